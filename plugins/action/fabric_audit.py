# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._audit import argspec, expect, io, paths, report
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import audit_expect
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.fleet_lock import fleet_lock
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import VARIABLE, state_dir

_SHOWN = ("hosts", "rails", "pools", "counts", "findings")


class ActionModule(ActionBase):
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        _valid, args = self.validate_argument_spec(argspec.AUDIT)
        folder = state_dir(variables, self._templar.template)
        if not folder:
            raise AnsibleActionFail(f"fabric_audit: got no fleet record, wanted a folder in {VARIABLE}")
        wants, document = self._expectations(variables["hostvars"], args["hosts"])
        if args["what"] == "targets":
            hosts = io.read(Path(folder), wants, datetime.now(timezone.utc))
            return {**result, "changed": False, "targets": paths.targets(wants, hosts)}
        found = io.audit(Path(folder), wants, datetime.now(timezone.utc))
        if not self._task.check_mode:
            self._store(Path(folder), document, found)
        failing = report.failing(found, args["fail_on"])
        result.update({key: found[key] for key in _SHOWN}, changed=False, table=report.table(found),
                      failing=len(failing), message=report.message(failing), report_file=f"{folder}/{io.REPORT}")
        return result

    def _expectations(self, hostvars: t.Any, hosts: list[str]) -> tuple[list[expect.HostWant], dict[str, t.Any]]:
        strangers = [host for host in hosts if host not in hostvars]
        if strangers:
            raise AnsibleActionFail(f"fabric_audit: hosts: got {', '.join(strangers)}, wanted hosts of the inventory")
        document, problems = audit_expect.of_inventory(hostvars, hosts, self._loader)
        if problems:
            raise AnsibleActionFail(f"fabric_audit: {'; '.join(problems)}")
        return expect.load(document), document

    def _store(self, folder: Path, document: t.Mapping[str, t.Any], found: t.Mapping[str, t.Any]) -> None:
        """The expectations lie beside the report, for the command line."""
        try:
            with fleet_lock(folder / "audit", "fabric_audit", VARIABLE):
                io.write(folder / io.EXPECT, document)
                io.write(folder / io.REPORT, found)
        except OSError as error:
            raise AnsibleActionFail(f"{error.filename or folder}: {error.strerror or error}; check the variable "
                                    f"{VARIABLE}") from error
