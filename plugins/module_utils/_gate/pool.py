# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The hosts of a pool and their rails: who is asked what, and what keeps the pool from being tested. Pure.

A *member* is what the role knows of a host: `pool`, `members` (names, in inventory order; the first is the
head), `address`, `port`, `rails` and `problems`.
"""
from __future__ import annotations

import typing as t

Member = t.Mapping[str, t.Any]
Members = t.Mapping[str, Member]


class ShapeError(Exception):
    """A value has the wrong shape; the message starts with its path."""


# -- rails ----------------------------------------------------------------------------------------------


def _address(port: t.Mapping[str, t.Any]) -> str | None:
    """The IPv4 address behind the port's RoCE v2 GID on its own netdev."""
    for gid in port.get("gids") or []:
        same = gid.get("ndev") in (None, port.get("netdev"))
        if same and (gid.get("family"), gid.get("type")) == ("ipv4", "RoCE v2"):
            return str(gid.get("address"))
    return None


def _rail(number: int, pci: str, device: t.Mapping[str, t.Any] | None) -> tuple[dict[str, t.Any] | None, str]:
    """The rail, or None and why there is none."""
    if device is None:
        return None, "there is no mlx5 device"
    port = (device.get("ports") or [{}])[0]
    address = _address(port)
    wanted = ((device.get("rdma_device"), "has no RDMA device"), (port.get("netdev"), "has no network interface"),
              (port.get("state") == "ACTIVE", f"is {port.get('state')}, not ACTIVE"),
              (address, "has no RoCE v2 GID of an IPv4 address"), (port.get("mtu_bytes"), "has no known MTU"))
    missing = next((words for value, words in wanted if not value), "")
    if missing:
        return None, missing
    return {"rail": number, "pci": pci, "hca": f"{device['rdma_device']}:{port.get('port', 1)}",
            "netdev": port["netdev"], "address": address, "mtu_bytes": port["mtu_bytes"]}, ""


def rails_of(facts: t.Any, pcis: t.Any) -> dict[str, list[t.Any]]:
    """``rails`` (number, pci, hca, netdev, address, mtu_bytes) from a result of mlx5_info, and ``problems``."""
    devices = facts.get("devices") if isinstance(facts, t.Mapping) else None
    if not isinstance(devices, list) or not all(isinstance(device, t.Mapping) for device in devices):
        raise ShapeError("devices: wanted a result of mlx5_info with a list of devices")
    if not isinstance(pcis, (list, tuple)):
        raise ShapeError(f"rails: got {type(pcis).__name__}, wanted a list of PCI addresses")
    by_pci = {device.get("pci"): device for device in devices}
    rails, problems = [], [] if pcis else ["no rails: set nccl_gate_rails (or mlx5_port_rails)"]
    for number, pci in enumerate(pcis):
        rail, why = _rail(number, pci, by_pci.get(pci))
        if rail is None:
            problems.append(f"rail {number} ({pci}) {why}")
        else:
            rails.append(rail)
    return {"rails": rails, "problems": problems}


def hcas_of(rails: t.Iterable[t.Mapping[str, t.Any]]) -> str:
    """NCCL_IB_HCA as an exact list in rail order."""
    return "=" + ",".join(rail["hca"] for rail in rails)


# -- paths ----------------------------------------------------------------------------------------------


def peers_of(names: t.Sequence[str], host: str) -> list[str]:
    """Whom a host asks: its neighbours in the ring, and head and all others each other."""
    if host not in names:
        return []
    at = list(names).index(host)
    if at == 0:
        return list(names[1:])
    ring = [names[at - 1], names[(at + 1) % len(names)], names[0]]
    return [name for name in dict.fromkeys(ring) if name != host]


def path_targets(members: Members, host: str, size_bytes: int = 0) -> list[dict[str, t.Any]]:
    """What path_probe asks on ``host``: rail k to rail k, with the larger MTU of both ends, or ``size_bytes``."""
    found = []
    for peer, member in members.items():
        if peer == host:
            continue
        other = {rail["rail"]: rail for rail in member.get("rails", [])}
        for rail in members[host].get("rails", []):
            end = other.get(rail["rail"])
            if end is not None:
                size = size_bytes or max(rail["mtu_bytes"], end["mtu_bytes"])
                found.append({"rail": rail["rail"], "interface": rail["netdev"], "source": rail["address"],
                              "peer": peer, "peer_interface": end["netdev"], "address": end["address"],
                              "size_bytes": size})
    return found


# -- the run --------------------------------------------------------------------------------------------


def problems(names: t.Sequence[str], members: Members) -> list[str]:
    """Why the pool cannot be tested as a whole; empty if it can."""
    found = [f"{name}: {text}" for name in names for text in members.get(name, {}).get("problems", [])]
    lists = {name: hcas_of(members[name].get("rails", [])) for name in names if name in members}
    head = lists.get(names[0]) if names else None
    found += [f"{name}: the rails are {hcas}, on {names[0]} {head}; NCCL_IB_HCA must be the same on all hosts"
              for name, hcas in lists.items() if head is not None and hcas != head and not found]
    return found


def test_hosts(names: t.Sequence[str], members: Members, access: Members) -> list[dict[str, t.Any]]:
    """Option ``hosts`` of nccl_test. ``access``: results of run_access by host."""
    return [{
        "name": name, "hostname": access.get(name, {}).get("hostname") or name,
        "address": members[name]["address"], "port": members[name]["port"],
        "host_keys": access.get(name, {}).get("host_keys") or [],
    } for name in names]


def ready(names: t.Sequence[str], access: Members, paths: Members) -> bool:
    """Whether every host lets the key in and every path carries its size."""
    return all(access.get(name, {}).get("host_keys") and paths.get(name, {}).get("too_small") == 0 for name in names)
