# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a call of slurm_reservation wants, and what is there."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

State = t.Literal["present", "absent"]
# Begins the name of each reservation of ours; no other one is ever touched. No purpose and no run's id has a dot, so no
# purpose's names begin like those of another.
OURS = "aidc."


@dataclass(frozen=True)
class Request:
    """``nodes`` and ``users`` in their order, each once; ``run_id`` empty: of any run (absent)."""

    purpose: str
    run_id: str = ""
    state: State = "present"
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ("root",)
    minutes: int = 60

    @property
    def prefix(self) -> str:
        return f"{OURS}{self.purpose}."

    @property
    def name(self) -> str:
        return self.prefix + self.run_id

    def is_mine(self, name: str) -> bool:
        """This one; for ``absent`` without a run, each one of this purpose."""
        return name == self.name if self.run_id else name.startswith(self.prefix)

    def is_left(self, name: str) -> bool:
        """Of another run for the same purpose."""
        return name.startswith(self.prefix) and name != self.name


@dataclass(frozen=True)
class Reservation:
    """One as scontrol shows it; nodes and users are sorted."""

    name: str
    nodes: tuple[str, ...]
    users: tuple[str, ...]
    start: str = ""
    end: str = ""
    state: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"name": self.name, "nodes": list(self.nodes), "users": list(self.users), "start": self.start,
                "end": self.end, "state": self.state}


@dataclass(frozen=True)
class Step:
    command: tuple[str, ...]
    why: str

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": "none", "why": self.why}
