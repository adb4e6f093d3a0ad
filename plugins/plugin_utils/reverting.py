# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The controller's half of an armed revert: come back over a new connection, and only then keep the change."""
from __future__ import annotations

import time
import typing as t

from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

REVERT = "aidc.gpu_cluster.armed_revert"
# After the host's own time: for the undo itself, and for what a try of ssh takes.
GRACE_SECONDS = 60.0
POLL_SECONDS = 1.0


class Reverting(ActionBase):
    """An action that runs a module which may arm a revert."""

    def run_module(self, module: str, args: dict[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """The module's result; with an armed revert only after the host was reached again."""
        lost: AnsibleConnectionFailure | None = None
        result: dict[str, t.Any] = {}
        try:
            result = self._execute_module(module_name=f"aidc.gpu_cluster.{module}", module_args=args,
                                          task_vars=variables)
        except AnsibleConnectionFailure as error:
            if self._task.check_mode or not boolean(args.get("allow_management") or False, strict=False):
                raise
            lost = error
        if lost is None and not result.get("armed"):
            return result
        return self._come_back(module, result, lost, float(args.get("revert_seconds") or 60), variables)

    def _come_back(self, module: str, result: dict[str, t.Any], lost: AnsibleConnectionFailure | None, seconds: float,
                   variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """Without a result of the module nothing is cancelled: what it did is not known, and is undone."""
        deadline = time.monotonic() + seconds + GRACE_SECONDS
        args = {"module": module, "state": "status" if lost else "cancelled"}
        while True:
            answer = self._ask(args, variables)
            found = [] if answer is None else answer.get("before") or []
            if answer is not None and answer.get("failed"):
                return {**answer, "changed": bool(result.get("changed"))}
            if any(entry["state"] == "undone" for entry in found):
                return self._undone(module, found)
            undoing = any(entry["state"] == "undoing" for entry in found)
            if answer is not None and lost is None and not undoing:
                return {**result, "armed": {**result["armed"], "state": "cancelled"}}
            if answer is not None and not found:
                raise t.cast("AnsibleConnectionFailure", lost)
            if time.monotonic() >= deadline:
                raise AnsibleConnectionFailure(
                    f"{module}: the host did not answer after its change; it undoes it by itself {seconds:g} s after "
                    f"the last write{f' ({lost})' if lost else ''}")
            time.sleep(POLL_SECONDS)

    def _ask(self, args: dict[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any] | None:
        """Over a connection that did not exist before the change; None where there is no way."""
        try:
            self._connection.reset()
            answer: dict[str, t.Any] = self._execute_module(module_name=REVERT, module_args=args, task_vars=variables)
        except AnsibleConnectionFailure:
            return None
        return answer

    @staticmethod
    def _undone(module: str, found: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        entry = next(entry for entry in found if entry["state"] == "undone")
        bad = f" Not all could be restored: {'; '.join(entry['problems'])}." if entry["problems"] else ""
        return {"failed": True, "changed": False, "armed": entry, "commands": [], "msg": (
            f"{module}: the change was undone on the host at {entry['undone_at']} because "
            f"{entry['reason']}.{bad} Change the values, or reach the host by another way.")}
