# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurmctld's reservations for unit tests: scontrol's create, delete and show."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import hostlist

# Of 24.11.5; the names of the keys are those since 17.11.
LINE = ("ReservationName={name} StartTime=2026-12-01T01:45:38 EndTime=2026-12-01T01:50:38 Duration=00:05:00 "
        "Nodes={nodes} NodeCnt=2 CoreCnt=208 Features=(null) PartitionName=(null) Flags=SPEC_NODES "
        "TRES=cpu=208 Users={users} Groups=(null) "
        "Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) MaxStartDelay=(null)\n")


@dataclass
class FakeReservations:
    """slurmctld's reservations: name to (nodes, users); ``jobs`` runs on a node."""

    root: Path
    held: dict[str, tuple[str, str]] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    lies: bool = False
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        call = tuple(argv)
        self.calls.append(call)
        rc, out, error = self.answer(call)
        return Result(call, "ok" if rc == 0 else "failed", rc, out, error)

    def answer(self, call: tuple[str, ...]) -> tuple[int, str, str]:
        if call == ("scontrol", "-o", "show", "reservation"):
            lines = [LINE.format(name=name, nodes=nodes, users=users) for name, (nodes, users) in self.held.items()]
            return 0, "".join(lines) or "No reservations in the system\n", ""
        if call[0] == "squeue":
            return 0, "".join(f"{job} {node}\n" for node, job in self.jobs.items()), ""
        if call[:3] == ("scontrol", "show", "hostnames"):
            return 0, "\n".join(hostlist.expand(call[3])), ""
        said = dict(word.split("=", 1) for word in call if "=" in word)
        if self.lies:
            return 0, "", ""
        if call[1] == "delete":
            return (0, "", "") if self.held.pop(said["ReservationName"], None) else (1, "", "Reservation not found")
        assert call[:3] == ("scontrol", "create", "reservation") and said["StartTime"] == "now"
        nodes = hostlist.expand(said["Nodes"])
        if set(nodes) & set(self.jobs):
            return 1, "", "Error creating the reservation: Requested nodes are busy"
        taken = {node for held, _users in self.held.values() for node in hostlist.expand(held)}
        if taken & set(nodes):
            return 1, "", "Error creating the reservation: Requested reservation overlaps with another reservation"
        self.held[said["ReservationName"]] = (said["Nodes"], said["Users"])
        return 0, f"Reservation created: {said['ReservationName']}\n", ""

    def machine(self) -> Machine:
        return Machine(self.root, self.run, lambda _seconds: None, lambda: 0.0, pid=1, tool_timeout_seconds=1)

    def writes(self) -> list[tuple[str, ...]]:
        return [call for call in self.calls if call[1] in ("create", "delete")]
