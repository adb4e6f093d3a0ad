# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""With whom a host tries its rails after a change, and what the answers say. Pure.

A neighbour is a host of the same class. To one that this run has already configured, full packets must pass. Of
another one only the record is known, and that may be of yesterday: to it must pass what passed just before the change.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .rails import roce_gids

Records = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class End:
    """A rail of a host as its record of mlx5_info has it."""

    rail: int
    netdev: str
    address: str
    mtu_bytes: int


def _address(port: t.Mapping[str, t.Any]) -> str | None:
    """The IPv4 address behind the port's RoCE v2 GID on its own netdev."""
    addresses = (str(gid.get("address")) for gid in roce_gids(port))
    return next((address for address in addresses if not address.startswith("169.254.")), None)


def ends(record: t.Any) -> dict[int, End]:
    """The rails that can be asked: active, with a netdev and an address."""
    found = {}
    devices = (record.get("data") or {}).get("devices") if isinstance(record, t.Mapping) else None
    for device in devices if isinstance(devices, list) else ():
        rail, port = device.get("rail"), (device.get("ports") or [{}])[0]
        address = _address(port) if port.get("netdev") else None
        mtu = port.get("mtu_bytes")
        if isinstance(rail, int) and port.get("state") == "ACTIVE" and address and isinstance(mtu, int):
            found[rail] = End(rail, port["netdev"], address, mtu)
    return found


def _ring(hosts: t.Sequence[str], host: str) -> list[str]:
    """The other hosts, the next one first."""
    place = hosts.index(host)
    return [*hosts[place + 1:], *hosts[:place]]


def _target(own: End, other: str, end: End, most_bytes: int = 65535) -> dict[str, t.Any]:
    """The size is the smaller MTU of both ends, as the neighbour may still have to get the larger one."""
    size_bytes = min(own.mtu_bytes, end.mtu_bytes, most_bytes)
    return {"rail": own.rail, "interface": own.netdev, "source": own.address, "peer": other,
            "peer_interface": end.netdev, "address": end.address, "size_bytes": size_bytes}


def before(records: Records, hosts: t.Sequence[str], asking: t.Collection[str]) -> dict[str, list[dict[str, t.Any]]]:
    """For each host of ``asking`` whom to ask before the change: on each rail one neighbour that is not changed
    with it. ``hosts`` are those of one class with a record that is not old."""
    known = {host: ends(records.get(host)) for host in hosts}
    found: dict[str, list[dict[str, t.Any]]] = {}
    for host in (host for host in hosts if host in asking):
        found[host] = []
        for rail, own in known[host].items():
            other = next((name for name in _ring(hosts, host) if name not in asking and rail in known[name]), None)
            if other is not None:
                found[host].append(_target(own, other, known[other][rail]))
    return found


def answered(paths: t.Any) -> dict[tuple[int, str], int]:
    """By (rail, neighbour) the largest size in bytes that passed; who did not answer at all is not in it."""
    return {(path["rail"], path["peer"]): path["largest_bytes"] for path in paths if path.get("largest_bytes")} \
        if isinstance(paths, list) else {}


def after(
    records: Records, hosts: t.Sequence[str], host: str, done: t.Collection[str],
    answers: t.Mapping[tuple[int, str], int],
) -> list[dict[str, t.Any]]:
    """Whom ``host`` asks after the change: on each rail one neighbour of ``done``, else one that answered before."""
    known = {name: ends(records.get(name)) for name in hosts}
    found = []
    for rail, own in known[host].items():
        ring = [name for name in _ring(hosts, host) if rail in known[name]]
        other = next((name for name in ring if name in done), None) \
            or next((name for name in ring if (rail, name) in answers), None)
        if other is not None:
            sizes = [] if other in done else [answers[rail, other]]
            found.append(_target(own, other, known[other][rail], *sizes))
    return found


def _finding(host: str, path: t.Mapping[str, t.Any]) -> str:
    got = f"{path['largest_bytes']} bytes at most" if path["largest_bytes"] else "no answer"
    why = f", {path['reason']}" if path.get("reason") else ""
    own, far = f"{path['interface']}, {path['source']}", f"{path['peer']} ({path['address']})"
    return (f"{host} rail {path['rail']} ({own}) to {far}: got {got}, "
            f"wanted {path['size_bytes']} bytes unfragmented{why}")


def findings(host: str, paths: t.Any) -> list[str]:
    """What is wrong with the answers of path_probe, one text for each path."""
    return [_finding(host, path) for path in paths if not path["passed"]] if isinstance(paths, list) else []
