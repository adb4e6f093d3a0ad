# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""An action plugin that runs the module of its own name and keeps the result in the fleet record."""
from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.record import RecordError, check_name
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.reverting import Reverting
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils.state import state_dir as find_state_dir

# Keys that the engine adds to a result; they are no facts about the host.
_ENGINE_KEYS = {"changed", "invocation", "failed", "warnings", "deprecations"}


class RecordingAction(Reverting):
    """``kind`` names the record's folder, and the module."""

    _supports_check_mode = True
    kind: t.ClassVar[str]
    # The module, where it is not the kind's namesake.
    module: t.ClassVar[str] = ""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        variables = task_vars or {}
        result: dict[str, t.Any] = super().run(tmp, variables)
        host = str(variables["inventory_hostname"])
        state_dir = find_state_dir(variables, self._templar.template)
        try:
            if state_dir:
                check_name(host, "host name")
            result.update(self._call(self._task.args, variables))
            if state_dir and not result.get("failed") and self._is_fact(result):
                data = self.facts({key: value for key, value in result.items()
                                   if key not in _ENGINE_KEYS and not key.startswith("_")})
                run_id = self._variable(variables, "aidc_run_id")
                result["record_file"] = str(store.store(Path(state_dir), self.kind, host, data, run_id))
        except RecordError as error:
            raise AnsibleActionFail(str(error)) from error
        return result

    def _call(self, arguments: t.Mapping[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module; a plugin that brings something along for it overrides this."""
        return self.run_module(self.module or self.kind, dict(arguments), variables)

    def _is_fact(self, result: t.Mapping[str, t.Any]) -> bool:
        """Whether the result says what is. A module that changes things overrides it for its predictions."""
        return True

    def facts(self, data: dict[str, t.Any]) -> dict[str, t.Any]:
        """What of a result is kept; a module that changes things keeps what is, not how it came about."""
        return data

    def _variable(self, variables: t.Mapping[str, t.Any], name: str) -> str | None:
        value = self._templar.template(variables.get(name))
        return str(value) if value else None
