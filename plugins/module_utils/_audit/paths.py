# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which paths are measured: each rail to the same rail of the next host of its leaf, and of the next leaf. Pure.

As many as rails, whatever the size of the fleet: a leaf's hosts are a ring, and so are the leaves of a pool. Between
leaves a rail is asked only where it has a gateway.
"""
from __future__ import annotations

import typing as t

from .expect import HostWant, RailWant
from .facts import Host, Place

Target = dict[str, t.Any]


class _End(t.NamedTuple):
    host: str
    want: RailWant
    place: Place

    @property
    def address(self) -> str | None:
        """The planned address, else the one that there is; `path_probe` speaks IPv4."""
        text = self.want.address.partition("/")[0] if self.want.address else next(iter(self.place.addresses), None)
        return text if text and ":" not in text else None


def _target(end: _End, other: _End) -> Target:
    size = max(end.want.want.mtu or end.place.facts.mtu or 0, other.want.want.mtu or other.place.facts.mtu or 0)
    return {"rail": end.want.rail, "interface": end.place.netdev, "source": end.address, "peer": other.host,
            "peer_interface": other.place.netdev, "address": other.address, "size_bytes": size}


def _ring(ends: t.Sequence[_End]) -> t.Iterator[tuple[_End, _End]]:
    """Of two only one asks: an echo has the size of its request."""
    count = len(ends)
    for position in range(count if count > 2 else count - 1):
        yield ends[position], ends[(position + 1) % count]


def _usable(end: _End) -> bool:
    return bool(end.address and end.place.netdev and end.place.facts.link_layer in (None, "Ethernet"))


def targets(wants: t.Sequence[HostWant], hosts: t.Mapping[str, Host]) -> dict[str, list[Target]]:
    """Option ``targets`` of path_probe by host."""
    leaves: dict[tuple[str, int], dict[str | None, list[_End]]] = {}
    for want in wants:
        for rail, place in zip(want.rails, hosts[want.name].places):
            end = _End(want.name, rail, place)
            if _usable(end):
                leaves.setdefault((want.pool, rail.rail), {}).setdefault(rail.subnet, []).append(end)
    found: dict[str, list[Target]] = {}
    for groups in leaves.values():
        pairs = [pair for ends in groups.values() for pair in _ring(ends)]
        routed = [ends[0] for ends in groups.values() if ends[0].want.routing]
        for one, other in [*pairs, *_ring(routed)]:
            target = _target(one, other)
            if target["size_bytes"]:
                found.setdefault(one.host, []).append(target)
    return found
