# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""QoS of RoCE ports: the state of a port as named groups, what a call wants of it, and one step of a change."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from .._idle.model import Policy

DSCPS, PRIORITIES, TCS = 64, 8, 8
# In the order of writing. The owner first: another one would overwrite the rest. Trust and map before what relies on
# priorities; buffers before PFC, as a lossless priority on a buffer of size 0 is EINVAL
# [Linux drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c].
GROUPS = ("dcbx", "trust", "dscp_map", "ets", "cable_length", "buffer", "pfc", "ecn", "cnp", "cm_tos", "traffic_class")
# What the DCBX owner negotiates with the switch.
NEGOTIATED = ("trust", "dscp_map", "ets", "pfc", "buffer", "cable_length")
# Groups that a tool for dcbnl reads and writes; the others are files of the kernel.
DCBNL_GROUPS = ("dcbx", *NEGOTIATED)
# Of the RDMA device, which a bond's ports share.
SHARED_GROUPS = ("cm_tos", "traffic_class")
# The driver's own map, before anybody sets one [mlx5 en_dcbnl.c].
DEFAULT_MAP = tuple(dscp >> 3 for dscp in range(DSCPS))

State = dict[str, t.Any]
Disruptive = t.Literal["none", "link"]


def tos(dscp: int) -> int:
    """The ToS byte of a DSCP; the two low bits are ECN's, which the hardware sets."""
    return dscp << 2


def same(group: str, have: t.Any, want: t.Any) -> bool:
    """Whether a group is as wanted. 104 and 106 are the same DSCP 26: only the DSCP part is used for RC."""
    if have is None:
        return False
    if group in SHARED_GROUPS:
        return bool(have >> 2 == want >> 2)
    return bool(have == want)


@dataclass(frozen=True)
class Want:
    """The managed groups of one port with their values; ``required`` ones must be possible."""

    pci: str
    state: State
    required: frozenset[str] = frozenset()
    lossless: bool = True


@dataclass(frozen=True)
class Request:
    wants: tuple[Want, ...]
    backend: str = "auto"
    take_over: bool = False
    disruption_policy: Policy = "if_idle"
    allow_management: bool = False
    # How long the undo waits for the controller; 0: none is armed.
    revert_seconds: float = 0


@dataclass(frozen=True)
class Port:
    """One port as it is. ``unsupported`` says of a group why it cannot be had here."""

    pci: str
    netdev: str
    rdma_device: str | None = None
    bond: str | None = None
    carrier: bool = False
    state: State = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    cnp_files: tuple[str, ...] = ()
    global_pause: str | None = None


@dataclass(frozen=True)
class Node:
    """All that one read gives; with a problem nothing may be written."""

    backend: str
    ports: dict[str, Port] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    lldpad: bool = False


@dataclass(frozen=True)
class Step:
    """One mutation. ``command`` is an argv list, or ("write", path, value) for a file of the kernel."""

    command: tuple[str, ...]
    groups: tuple[str, ...]
    why: str
    pci: str | None = None
    disruptive: Disruptive = "none"
    wait_carrier: str | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "groups": list(self.groups), "disruptive": self.disruptive,
                "why": self.why, "pci": self.pci}
