# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The addresses of a fleet's rails, computed from its inventory. Pure; on the controller, with netaddr.

Two schemes (host-setup.md 1.1): the n-th address of the rail's subnet, or the n-th /31 (/127) of it, with the leaf
on one end. What a host's number is, is the inventory's to say: ``rail_network_node_index``.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._host.errors import Problem
from .._mlx5.model import PCI_ADDRESS

try:
    import netaddr  # type: ignore[import-untyped]
except ImportError:
    netaddr = None

VARIABLE = "rail_network_rails"
INDEX = "rail_network_node_index"
SUBNETS = "rail_network_subnets"
LEAF_END = "rail_network_leaf_end"
_KEYS = {"rail", "pci", "subnet", "gateway", "prefix_length", "mtu_bytes", "destinations"}
_POINT_TO_POINT = {4: 31, 6: 127}


@dataclass(frozen=True)
class Planned:
    """A rail of a host with its address."""

    host: str
    rail: int
    pci: str
    subnet: t.Any
    address: t.Any
    length: int
    gateway: t.Any = None
    mtu_bytes: int | None = None
    destinations: tuple[str, ...] = ()

    def as_option(self) -> dict[str, t.Any]:
        """As the module rail_network takes it."""
        found: dict[str, t.Any] = {"rail": self.rail, "pci": self.pci, "address": f"{self.address}/{self.length}"}
        if self.gateway is not None:
            found.update(gateway=str(self.gateway), destinations=list(self.destinations))
        if self.mtu_bytes is not None:
            found["mtu_bytes"] = self.mtu_bytes
        return found


class Bad(Exception):
    def __init__(self, where: str, got: t.Any, wanted: str, hint: str = "") -> None:
        super().__init__(where)
        self.problem = Problem(where, repr(got), wanted, hint)


def _is_integer(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _network(where: str, value: t.Any) -> t.Any:
    try:
        network = netaddr.IPNetwork(str(value))
    except (netaddr.AddrFormatError, ValueError):
        raise Bad(where, value, "a network such as 192.0.2.0/24") from None
    if "/" not in str(value) or network.ip != network.network:
        raise Bad(where, value, "a network such as 192.0.2.0/24, its address with no bit set beyond its length")
    return network


def _address(where: str, value: t.Any) -> t.Any:
    try:
        return netaddr.IPAddress(str(value))
    except (netaddr.AddrFormatError, ValueError):
        raise Bad(where, value, "an address such as 192.0.2.254") from None


def _flat(where: str, network: t.Any, index: int) -> t.Any:
    """The n-th address; the first and, with IPv4, the last are no host's."""
    last = network.size - 1
    most = last - 1 if network.version == 4 else last
    if not 1 <= index <= most:
        kind = {0: "the network's own address", last: "the broadcast address"}.get(index, "outside the subnet")
        raise Bad(where, index, f"1 to {most} for {network}", f"{index} is {kind}")
    return network[index]


def _point_to_point(where: str, network: t.Any, index: int, leaf_end: str) -> tuple[t.Any, t.Any]:
    """The host's and the leaf's address in the n-th pair; a subnet that is a pair has only one."""
    pairs = network.size // 2
    number = 0 if pairs == 1 else index
    if not 0 <= number < pairs:
        raise Bad(where, index, f"0 to {pairs - 1} for {network} in pairs")
    low, high = network[2 * number], network[2 * number + 1]
    return (high, low) if leaf_end == "low" else (low, high)


def _subnet(where: str, rail: t.Mapping[str, t.Any], subnets: t.Any) -> t.Any:
    if "subnet" in rail:
        return _network(f"{where}.subnet", rail["subnet"])
    number = rail["rail"]
    if not isinstance(subnets, (list, tuple)) or not 0 <= number < len(subnets):
        raise Bad(f"{where}.subnet", None, f"a network, here or as entry {number} of {SUBNETS}")
    return _network(f"{SUBNETS}[{number}]", subnets[number])


def _shape(where: str, rail: t.Any) -> None:
    if not isinstance(rail, t.Mapping):
        raise Bad(where, rail, "a mapping with rail and pci")
    unknown = sorted(set(map(str, rail)) - _KEYS)
    if unknown:
        raise Bad(where, unknown[0], f"keys of {', '.join(sorted(_KEYS))} only")
    if not _is_integer(rail.get("rail")) or rail["rail"] < 0:
        raise Bad(f"{where}.rail", rail.get("rail"), "the rail's number, from 0")
    pci = rail.get("pci")
    if not isinstance(pci, str) or not PCI_ADDRESS.fullmatch(pci):
        raise Bad(f"{where}.pci", pci, "a PCI address in lower case such as '0000:03:00.0'")

    destinations = rail.get("destinations") or []
    if not isinstance(destinations, (list, tuple)):
        raise Bad(f"{where}.destinations", destinations, "a list of networks")
    for position, there in enumerate(destinations):
        _network(f"{where}.destinations[{position}]", there)


def _rail(host: str, where: str, rail: t.Any, values: t.Mapping[str, t.Any]) -> Planned:
    _shape(where, rail)
    subnet = _subnet(where, rail, values.get(SUBNETS))
    index: t.Any = values.get(INDEX)
    leaf_end = values.get(LEAF_END) or "low"
    if not _is_integer(index):
        raise Bad(f"{host}: {INDEX}", index, "the host's number in its subnets")
    if leaf_end not in ("low", "high"):
        raise Bad(f"{host}: {LEAF_END}", leaf_end, "low or high")
    pair, length = _POINT_TO_POINT[subnet.version], rail.get("prefix_length") or subnet.prefixlen
    gateway = _address(f"{where}.gateway", rail["gateway"]) if rail.get("gateway") else None
    if length == pair:
        address, leaf = _point_to_point(f"{host}: {INDEX}", subnet, index, leaf_end)
        gateway = gateway or leaf
        own = netaddr.IPNetwork(f"{address}/{length}").cidr
    elif length == subnet.prefixlen:
        address, own = _flat(f"{host}: {INDEX}", subnet, index), subnet
    else:
        raise Bad(f"{where}.prefix_length", length, f"{pair}, or none for the subnet's own {subnet.prefixlen}")
    if gateway is not None and (gateway.version != own.version or gateway not in own):
        raise Bad(f"{where}.gateway", str(gateway), f"an address in {own}")
    if gateway == address:
        raise Bad(f"{where}.gateway", str(gateway), "another address than the host's own",
                  f"{LEAF_END} may be the wrong one")
    return Planned(host, rail["rail"], rail["pci"], subnet, address, length, gateway, rail.get("mtu_bytes"),
                   tuple(map(str, rail.get("destinations") or ())))


def plan_host(host: str, values: t.Mapping[str, t.Any]) -> tuple[list[Planned], list[Problem]]:
    """The rails of one host from its variables."""
    rails = values.get(VARIABLE)
    if not isinstance(rails, (list, tuple)):
        return [], [Problem(f"{host}: {VARIABLE}", repr(rails), "a list with one entry per rail")]
    found, problems = [], []
    for position, rail in enumerate(rails):
        try:
            found.append(_rail(host, f"{host}: {VARIABLE}[{position}]", rail, values))
        except Bad as bad:
            problems.append(bad.problem)
    return found, problems + _within(host, found)


def _within(host: str, rails: t.Sequence[Planned]) -> list[Problem]:
    """Rails of one host against each other."""
    problems = []
    for position, one in enumerate(rails):
        for other in rails[position + 1:]:
            if one.rail == other.rail:
                problems.append(Problem(f"{host}: {VARIABLE}", f"rail {one.rail} twice", "each number once"))
            if one.pci == other.pci:
                problems.append(Problem(f"{host}: {VARIABLE}", f"{one.pci} for rails {one.rail} and {other.rail}",
                                        "each PCI address once"))
            if one.subnet in other.subnet or other.subnet in one.subnet:
                problems.append(Problem(f"{host}: rails {one.rail} and {other.rail}",
                                        f"{one.subnet} and {other.subnet}", "subnets that do not overlap",
                                        "in one subnet the wrong port answers"))
    return problems


def _overlaps(planned: t.Sequence[Planned]) -> list[Problem]:
    """Subnets of the fleet: two that overlap are one and the same, and of the same rail."""
    users: dict[t.Any, Planned] = {}
    problems = []
    for item in planned:
        first = users.setdefault(item.subnet, item)
        if first.rail != item.rail and first.host != item.host:
            problems.append(Problem(f"subnet {item.subnet}", f"rail {first.rail} of {first.host} and rail {item.rail} "
                                    f"of {item.host}", "one rail", "the rails of a fleet have subnets of their own"))
    # In order of their first address a subnet can overlap only with one that is still open.
    outer = None
    for subnet in sorted(users, key=lambda network: (network.version, network.first, network.prefixlen)):
        if outer is not None and outer.version == subnet.version and subnet.first <= outer.last:
            one, other = users[outer], users[subnet]
            if one.host != other.host:
                problems.append(Problem(f"rail {one.rail} of {one.host} and rail {other.rail} of {other.host}",
                                        f"{outer} and {subnet}", "the same subnet, or ones that do not overlap"))
        else:
            outer = subnet
    return problems


def _duplicates(planned: t.Sequence[Planned]) -> list[Problem]:
    owners: dict[t.Any, Planned] = {}
    problems = []
    for item in planned:
        first = owners.setdefault(item.address, item)
        if first is not item:
            problems.append(Problem(f"address {item.address}", f"rail {first.rail} of {first.host} and rail "
                                    f"{item.rail} of {item.host}", "one port", f"two hosts may have the same {INDEX}"))
    for item in planned:
        if item.gateway is not None and item.gateway in owners:
            first = owners[item.gateway]
            problems.append(Problem(f"gateway {item.gateway} of rail {item.rail} of {item.host}",
                                    f"the address of rail {first.rail} of {first.host}", "the leaf's address"))
    return problems


def plan(fleet: t.Mapping[str, t.Mapping[str, t.Any]]) -> tuple[dict[str, list[dict[str, t.Any]]], list[Problem]]:
    """Rails of every host as options of the module, and what is wrong in the fleet."""
    if netaddr is None:
        return {}, [Problem("netaddr", "not installed", "the Python package netaddr on the controller")]
    planned: list[Planned] = []
    problems: list[Problem] = []
    options = {}
    for host, values in fleet.items():
        rails, bad = plan_host(host, values)
        planned += rails
        problems += bad
        options[host] = [item.as_option() for item in sorted(rails, key=lambda item: item.rail)]
    return options, list(dict.fromkeys([*problems, *_overlaps(planned), *_duplicates(planned)]))
