# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Its documentation is that of the module of the same name.
from __future__ import annotations

import os
import time
import typing as t
import zlib
from datetime import datetime, timezone
from pathlib import Path

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import argspec, document, store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.model import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.plan import Planner
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.search import (
    Answers,
    Launch,
    Setting,
    culprits,
    rules_of,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.searching import (
    Searching,
    Stopped,
    resumed,
    wanted,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError

MODULE = "aidc.gpu_cluster.nccl_batch"
# Options of nccl_batch that it gets as they are.
_PASSED_ON = ("run_id", "hosts", "launcher", "gpus_per_host", "processes_per_host", "step_factor", "iterations",
              "warmup_iterations", "check", "network", "pass_fraction", "parallel", "allow_simulated", "allow_socket")
_SETTING = ("pool", "gpus_per_host", "min_busbw_gbps", "node_busbw_gbps", "program", "min_bytes", "max_bytes")


def setting_of(args: t.Mapping[str, t.Any]) -> Setting:
    rails = {int(rail["rail"]): str(rail["hca"]) for rail in args["rails"]}
    nodes = tuple(Node(host["name"], str(args["leaves"].get(host["name"]) or "")) for host in args["hosts"])
    rules = rules_of(args["rules"], args["kinds"], len(rails), args["node_busbw_gbps"] > 0, args["pass_fraction"])
    environment = {name: str(value) for name, value in args["environment"].items()}
    return Setting(nodes=nodes, rails=rails, rules=rules, environment=environment,
                   time_limit_seconds=args["run_seconds"], **{name: args[name] for name in _SETTING})


class ActionModule(ActionBase):
    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _valid, args = self.validate_argument_spec(argspec.SEARCH)
        result.update(changed=False, searched=False, resumed=False, culprits=[], conclusion=None, notes=[], launches=0)
        folder, state = Path(args["report_dir"]), (args["first"].get("verdict") or {}).get("state")
        try:
            setting = setting_of(args)
            if self._task.check_mode:
                return result
            if not wanted(args["search"], state):
                if state == "PASS":
                    store.forget_search(folder, args["pool"])
                return result
            return {**result, **self._search(args, setting, folder, task_vars or {})}
        except (AidcError, store.StoreError) as error:
            raise AnsibleActionFail(str(error)) from error

    def _search(self, args: dict[str, t.Any], setting: Setting, folder: Path,
                task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        stored, age = store.read_search(folder, args["pool"], self._now())
        before = resumed(stored, setting, age, args["max_age_seconds"])
        planner = before or Planner(setting.nodes, setting.rules, zlib.crc32(args["run_id"].encode()), args["pool"])
        end, controller = time.monotonic() + args["time_limit_seconds"], os.getppid()
        work = Searching(
            setting, planner, lambda launches: self._execute(args, launches, task_vars, controller), Display().display,
            lambda case: t.cast(None, store.write_search(folder, args["pool"], case, self._now())),
            # As the pool's record says it. The log of a run that hung at once does not show that it was simulated.
            bool(args["allow_simulated"]), lambda: time.monotonic() >= end)
        if before:
            work.say(f"{args['pool']}: goes on with the search of {age:.0f} s ago, "
                     f"{len(planner.to_dict()['outcomes'])} runs are known")
        work.run()
        case = work.case()
        plain, (runs, _conclusion) = planner.conclusion().to_dict(), document.replay(case["search"])
        return {"searched": True, "resumed": before is not None, "conclusion": plain, "case": case,
                "culprits": culprits(plain, runs, setting.rails), "notes": work.notes,
                "launches": work.launched}

    @staticmethod
    def _now() -> datetime:
        return datetime.now(timezone.utc)

    def _execute(self, args: dict[str, t.Any], launches: list[Launch], task_vars: dict[str, t.Any],
                 controller: int) -> Answers:
        # A worker of Ansible has a session of its own and outlives ansible-playbook that is killed. Nobody waits for it
        # then, and it would keep the hosts from the run that goes on with the search.
        if os.getppid() != controller:
            raise Stopped("ansible-playbook is gone")
        options = {**{name: args[name] for name in _PASSED_ON}, "runs": launches}
        try:
            answer = self._execute_module(module_name=MODULE, module_args=options, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            # What is known so far is not lost with the head.
            raise Stopped(f"the head cannot be reached: {' '.join(str(error).split())[:400]}") from error
        if answer.get("failed") or answer.get("unreachable") or "runs" not in answer:
            raise Stopped(" ".join(str(answer.get("msg") or "no result").split())[:400])
        return {one["id"]: one for one in answer["runs"]}
