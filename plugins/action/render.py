# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import contextlib
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import argspec
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import rendering
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.fleet_lock import fleet_lock


class ActionModule(ActionBase):
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        _valid, args = self.validate_argument_spec(argspec.RENDER)
        strangers = [host for host in args["hosts"] if host not in variables["hostvars"]]
        if strangers:
            raise AnsibleActionFail(f"render: hosts: got {', '.join(strangers)}, wanted hosts of the inventory")
        fleet = rendering.Fleet(variables["hostvars"], args["hosts"], args["owner"], self._loader,
                                variables["groups"])
        files = fleet.files()
        if fleet.problems:
            raise AnsibleActionFail("; ".join(dict.fromkeys(fleet.problems)))
        folder = Path(args["directory"])
        try:
            with contextlib.nullcontext() if self._task.check_mode else fleet_lock(folder, "render", "aidc_render_dir"):
                different, gone = rendering.compare(folder, files)
                if not self._task.check_mode:
                    rendering.store(folder, files, different, gone)
        except OSError as error:
            raise AnsibleActionFail(f"render: {folder}: {error}") from error
        result.update(changed=bool(different or gone), directory=str(folder), files=len(files), written=different,
                      removed=gone, manifest=str(folder / rendering.MANIFEST))
        return result
