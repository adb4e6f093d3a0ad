# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A node as Slurm shows it, and what a call of slurm_node wants of it."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import reason as reasons
from .reason import Reason
from .states import NodeState

State = t.Literal["drained", "draining", "resumed", "undrained"]
DRAINS = ("drained", "draining")


@dataclass(frozen=True)
class SlurmNode:
    """``gres`` is what slurm.conf says; times are seconds since 1970, None where they are not known."""

    name: str
    state: NodeState
    reason: Reason = field(default_factory=Reason)
    reason_user: str = ""
    reason_time: float | None = None
    hostname: str = ""
    address: str = ""
    gres: str = ""
    gres_used: str = ""
    cpus: int | None = None
    real_memory_mib: int | None = None
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    version: str = ""
    boot_time: float | None = None
    next_state: str = ""
    tres: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        """What a call changes; jobs that come and go and slurmd's answers are not in it."""
        return {"name": self.name, "drain": self.state.drain, "down": self.state.down, "reason": self.reason.raw,
                "owner": owner(self.reason)}

    def details(self) -> dict[str, t.Any]:
        state = self.state
        return {
            **self.as_dict(), "state": state.text(), "drained": state.drained, "usable": state.usable,
            "reboot": state.reboot, "invalid": invalid(self), "run_id": self.reason.run_id or None,
            "appended": list(self.reason.appended), "reason_user": self.reason_user, "reason_time": self.reason_time,
            "hostname": self.hostname, "address": self.address, "gres": self.gres, "gres_used": self.gres_used,
            "cpus": self.cpus, "real_memory_mib": self.real_memory_mib, "features": list(self.features),
            "partitions": list(self.partitions), "version": self.version, "boot_time": self.boot_time,
        }


def owner(reason: Reason) -> str | None:
    """The source of a reason of ours, ``other`` for anybody else's, None without one."""
    return None if reason.kind == "none" else reason.source if reason.kind == "ours" else "other"


def invalid(node: SlurmNode) -> list[dict[str, str]]:
    """Why slurmctld takes the node's registration for invalid; empty where it does not."""
    if not node.state.invalid:
        return []
    unknown = {"field": "", "got": "not said: the reason is an older one", "wanted": "see slurmctld's log"}
    return reasons.registration(node.reason.raw) or [unknown]


@dataclass(frozen=True)
class Request:
    nodes: tuple[str, ...]
    state: State = "drained"
    source: str = "manual"
    run_id: str | None = None
    reason: str = ""
    # A node that somebody else has drained: an error, or left as it is.
    when_held: t.Literal["fail", "keep"] = "fail"
    # Resume a node whose reason is exactly this, whoever wrote it.
    force_reason: str | None = None
    wait_seconds: float = 600.0
    poll_seconds: float = 2.0

    @property
    def text(self) -> str:
        return reasons.format_reason(self.source, self.run_id, self.reason)


@dataclass(frozen=True)
class Step:
    command: tuple[str, ...]
    why: str
    nodes: tuple[str, ...]

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": "none", "why": self.why, "nodes": list(self.nodes)}
