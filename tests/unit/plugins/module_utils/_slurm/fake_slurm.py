# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A slurmctld for unit tests: scontrol's show and update of nodes, with the rules of driver-slurm-k8s 3.6."""
from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=72  CPUAlloc=0 CPUEfctv=144 CPUTot=144 CPULoad=4.21 "
    "AvailableFeatures=gb200,r01 ActiveFeatures=gb200,r01 Gres=gpu:gb200:4 NodeAddr={name} NodeHostName={name} "
    "Version=24.11.5 OS=Linux 6.1.0-37-amd64 #1 SMP PREEMPT_DYNAMIC State of the art  RealMemory=20000 AllocMem=0 "
    "FreeMem=18866 Sockets=2 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=train  BootTime=2026-11-30T00:42:10 SlurmdStartTime=2026-11-30T01:09:43 "
    "LastBusyTime=2026-11-30T01:10:27 ResumeAfterTime=None CfgTRES=cpu=144,mem=20000M,billing=144 AllocTRES= "
    "CurrentWatts=0 AveWatts=0")
STATE_REFUSED = "slurm_update error: Invalid node state specified\n"


@dataclass
class Fake:
    """One node; ``jobs`` counts the polls until its jobs have ended."""

    base: str = "IDLE"
    flags: set[str] = field(default_factory=set)
    reason: str = ""
    user: str = "root"
    jobs: int = 0

    @property
    def words(self) -> list[str]:
        return [self.base, *sorted(self.flags)]


@dataclass
class FakeSlurm:
    root: Path
    nodes: dict[str, Fake] = field(default_factory=dict)
    has_json: bool = True
    ignores_filter: bool = False
    # Tools that report success without effect.
    lies: bool = False
    # A slurmd that answers only after so many questions.
    silent: int = 0
    override: dict[tuple[str, ...], t.Callable[[], Result]] = field(default_factory=dict)
    calls: list[tuple[str, ...]] = field(default_factory=list)
    now: float = 0.0

    def machine(self) -> Machine:
        return Machine(self.root, self.run, self.sleep, lambda: self.now, pid=1, tool_timeout_seconds=1)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def updates(self) -> list[tuple[str, ...]]:
        return [call for call in self.calls if "update" in call]

    def run(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        call = tuple(argv)
        self.calls.append(call)
        for prefix, answer in self.override.items():
            if call[:len(prefix)] == prefix:
                return replace(answer(), argv=call)
        rc, out = self.answer(call)
        return Result(call, "ok" if rc == 0 else "failed", rc, out)

    def answer(self, call: tuple[str, ...]) -> tuple[int, str]:
        if call[:3] == ("scontrol", "show", "hostnames"):
            head, _open, inside = call[3].partition("[")
            first, _dash, last = inside.rstrip("]").partition("-")
            return 0, "".join(f"{head}{number:0{len(first)}d}\n" for number in range(int(first), int(last) + 1))
        if call[:2] == ("scontrol", "update"):
            return self.update(dict(word.split("=", 1) for word in call[2:]))
        if call[:4] == ("scontrol", "--json", "show", "node"):
            if not self.has_json:
                return 1, "scontrol: unrecognized option '--json'\nTry \"scontrol --help\" for more information\n"
            return 0, json.dumps(self.document(call[4].split(",")))
        assert call[:4] == ("scontrol", "-o", "show", "node"), call
        known = [name for name in call[4].split(",") if name in self.nodes]
        lines = [self.line(name) if name in known else f"Node {name} not found\n" for name in call[4].split(",")]
        return int(len(known) < len(lines)), "".join(lines)

    def tick(self, name: str) -> Fake:
        node = self.nodes[name]
        if node.base in ("MIXED", "ALLOCATED"):
            if node.jobs <= 0:
                node.base = "IDLE"
            node.jobs -= 1
        if "NOT_RESPONDING" in node.flags:
            if self.silent <= 0:
                node.flags.discard("NOT_RESPONDING")
            self.silent -= 1
        return node

    def line(self, name: str) -> str:
        node = self.tick(name)
        reason = f" Reason={node.reason} [{node.user}@2026-11-30T01:10:05]" if node.reason else ""
        return f"{LINE.format(name=name, state='+'.join(node.words))}{reason} Comment=none\n"

    def document(self, names: t.Sequence[str]) -> dict[str, t.Any]:
        asked = [name for name in self.nodes if self.ignores_filter or name in names]
        return {"nodes": [self.entry(name) for name in asked], "errors": [], "warnings": [],
                "last_update": {"set": True, "infinite": False, "number": 1796001005}}

    def entry(self, name: str) -> dict[str, t.Any]:
        node = self.tick(name)
        at = {"set": bool(node.reason), "infinite": False, "number": 1796001005 if node.reason else 0}
        return {"name": name, "hostname": name, "address": name, "state": node.words, "reason": node.reason,
                "reason_changed_at": at, "reason_set_by_user": node.user if node.reason else "", "cpus": 144,
                "real_memory": 20000, "gres": "gpu:gb200:4", "gres_used": "gpu:gb200:0(IDX:N/A)",
                "features": ["gb200", "r01"], "partitions": ["train"], "version": "24.11.5",
                "boot_time": {"set": True, "infinite": False, "number": 1795999330},
                "next_state_after_reboot": ["INVALID"], "tres": "cpu=144,mem=20000M,billing=144"}

    def update(self, words: dict[str, str]) -> tuple[int, str]:
        names, state, reason = words["nodename"].split(","), words["state"], words.get("reason")
        if any(name not in self.nodes for name in names):
            return 1, "slurm_update error: Invalid node name specified\n"
        if state == "drain" and not reason:
            return 1, "You must specify a reason when DOWNING or DRAINING a node. Request denied\n"
        if self.lies:
            return 0, ""
        return max((self.change(self.nodes[name], state, reason) for name in names), key=lambda one: one[0])

    def change(self, node: Fake, state: str, reason: str | None) -> tuple[int, str]:
        if reason:
            node.reason, node.user = reason, "root"
        if state == "drain":
            node.flags = (node.flags - {"FAIL"}) | {"DRAIN"}
            return 0, ""
        resumable = node.base == "DOWN" or node.flags & {"DRAIN", "FAIL", "REBOOT_REQUESTED"}
        if "INVALID_REG" in node.flags or (state == "resume" and not resumable):
            return 1, STATE_REFUSED
        node.flags -= {"DRAIN"} if state == "undrain" else {"DRAIN", "FAIL", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
        if state == "resume" and node.base == "DOWN":
            node.base = "IDLE"
        node.flags |= {"NOT_RESPONDING"}
        if node.base != "DOWN" and "FAIL" not in node.flags:
            node.reason = ""
        return 0, ""
