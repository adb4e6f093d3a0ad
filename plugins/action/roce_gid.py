# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.record import RecordError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.plan import moved
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.recording import RecordingAction
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import state_dir


class ActionModule(RecordingAction):
    kind = "roce_gid"

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Compare with the record of the last run, before it is replaced."""
        variables = task_vars or {}
        folder = state_dir(variables, self._templar.template)
        before = None
        try:
            if folder:
                before = store.load_one(Path(folder), self.kind, str(variables["inventory_hostname"]))
        except RecordError as error:
            raise AnsibleActionFail(str(error)) from error
        result = super().run(tmp, variables)
        if not result.get("failed") and isinstance(result.get("ports"), list):
            result["moved"] = moved(before["data"].get("ports") if before else None, result["ports"])
        return result
