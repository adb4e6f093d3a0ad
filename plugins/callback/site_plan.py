# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: site_plan
type: aggregate
short_description: Table of what a run in check mode of playbooks/plan.yml would do
version_added: 0.1.0
author: aidc.gpu_cluster contributors (@aidc)
description:
  - Sums up, for each host and role, what C(playbooks/plan.yml) predicts - changes, disruptive steps, resets and reboots
    that are needed afterwards, and what cannot be predicted - and shows it as a table at the end of the run.
  - Writes the same as JSON to the file named by the variable C(aidc_plan_file), or else to C(plan.json) in
    C(aidc_state_dir), by default C(.state) beside the inventory.
  - Silent in every other playbook, and in a run that is not in check mode.
requirements:
  - Enabled in the section C([defaults]) of ansible.cfg by C(callbacks_enabled = aidc.gpu_cluster.site_plan).
"""

import json
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ansible import context
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.files import write_atomic
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.site_plan import Cell, document, table
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import state_dir

PLAYBOOK = "plan.yml"
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "aidc.gpu_cluster.site_plan"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._active = False
        self._cells: dict[tuple[str, str], Cell] = {}
        self._hosts: dict[str, None] = {}
        self._unreachable: dict[str, str] = {}
        self._play: t.Any = None
        self._one: t.Any = None

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        name = Path(str(playbook._file_name)).name
        self._active = name == PLAYBOOK and bool(context.CLIARGS.get("check"))

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        self._play = play

    def _cell(self, result: t.Any) -> Cell:
        self._one = self._one or result.host
        host, role = str(result.host.get_name()), result.task._role
        self._hosts.setdefault(host)
        name = role.get_name().rsplit(".", 1)[-1] if role else "-"
        return self._cells.setdefault((host, name), Cell())

    def v2_runner_on_ok(self, result: t.Any) -> None:
        if self._active:
            self._cell(result).add(result.result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        if self._active and not ignore_errors:
            self._cell(result).fail(result.result)

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        if self._active:
            self._cell(result)
            self._unreachable[str(result.host.get_name())] = str(result.result.get("msg", "")).strip()

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        hosts = [host for host in self._hosts if host != "localhost"]
        if not self._active or not hosts:
            return
        for line in table(self._cells, hosts, self._unreachable):
            self._display.display(line)
        path = self._path()
        if path is None:
            return
        time = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = json.dumps(document(self._cells, hosts, self._unreachable, time), indent=1, sort_keys=True) + "\n"
        try:
            write_atomic(path, text, FILE_MODE, DIRECTORY_MODE)
        except OSError as error:
            self._display.warning(f"{path}: {error.strerror or error}; the plan was not written, check aidc_plan_file")
            return
        self._display.display(f"The plan as JSON: {path}")

    def _path(self) -> Path | None:
        """The file's name is the same for all hosts; the first one lends its variables."""
        manager = self._play.get_variable_manager()
        variables = manager.get_vars(play=self._play, host=self._one)
        templar = Templar(self._play.get_loader(), variables=variables)
        if variables.get("aidc_plan_file"):
            return Path(str(templar.template(variables["aidc_plan_file"])))
        folder = state_dir(variables, templar.template)
        return Path(folder) / "plan.json" if folder else None
