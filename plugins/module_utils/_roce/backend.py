# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a tool for dcbnl must do for us: read the groups of all ports, and name the commands that change one group."""
from __future__ import annotations

import typing as t
from abc import ABC, abstractmethod
from dataclasses import dataclass

from .._host.errors import Problem
from .._host.machine import Machine
from .model import DEFAULT_MAP, DSCPS, Disruptive, State


@dataclass(frozen=True)
class Command:
    """One call of the tool, the groups that it sets, and whether traffic stops for it."""

    argv: tuple[str, ...]
    groups: tuple[str, ...]
    disruptive: Disruptive = "none"


def map_changes(have: State, want: t.Sequence[int]) -> list[tuple[int, int]]:
    """Entries of the DSCP map that are wrong or missing."""
    missing = set(have.get("dscp_missing", ()))
    now = have["dscp_map"]
    return [(dscp, want[dscp]) for dscp in range(DSCPS) if dscp in missing or now[dscp] != want[dscp]]


class Backend(ABC):
    """A tool. Reading tells problems and never raises; ``commands`` is pure."""

    name: t.ClassVar[str]
    package: t.ClassVar[str]

    @abstractmethod
    def read(self, machine: Machine, netdevs: t.Sequence[str], groups: t.AbstractSet[str],
             ) -> tuple[dict[str, State], list[Problem]]:
        """State of each netdev, ``groups`` at least as far as the tool has them."""

    @abstractmethod
    def cannot(self, group: str, value: t.Any) -> str | None:
        """Why this tool cannot set the group to the value."""

    @abstractmethod
    def commands(self, netdev: str, group: str, have: State, want: State) -> list[Command]:
        """Calls that set the group; ``have`` is as the calls before these leave it."""

    def missing(self) -> Problem:
        return Problem(self.name, "the program is not installed", "a tool for the ports' QoS",
                       f"install the package {self.package}")


def wanted_map(want: State) -> list[int]:
    """The map to write where trust is turned to dscp, also if the map is not managed."""
    return list(want.get("dscp_map") or DEFAULT_MAP)
