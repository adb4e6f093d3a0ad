# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the host uses its network ports for."""
from __future__ import annotations

from dataclasses import dataclass, field

from .._host.errors import Problem


@dataclass(frozen=True)
class Link:
    """One link as ``ip -d -j addr`` shows it. ``max_mtu_bytes`` is None where the driver states no limit."""

    name: str
    index: int = 0
    max_mtu_bytes: int | None = None
    kind: str = ""
    master: str | None = None
    member_kind: str = ""
    lower: str | None = None
    addresses: tuple[str, ...] = ()
    mtu_bytes: int | None = None


@dataclass(frozen=True)
class NetState:
    """Links and their uses. With an entry in ``problems`` a use may be unknown: then no port may be touched."""

    links: dict[str, Link] = field(default_factory=dict)
    default_devices: tuple[str, ...] = ()
    ssh_addresses: tuple[str, ...] = ()
    storage: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
