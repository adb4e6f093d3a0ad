# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is wrong with a request, before anything is written. Pure."""
from __future__ import annotations

import ipaddress
import typing as t
from collections import Counter

from .._host.errors import Problem
from .._mlx5.model import PCI_ADDRESS
from .._net import plan as net_plan
from .._networkd.model import IPV6_MIN_MTU_BYTES
from . import detect
from .model import Node, Request, Want

# 0, 253 (default), 254 (main), 255 (local) are the kernel's; rules from 32766 on, too.
_TABLES = range(1, 2**32)
_KERNEL_TABLES = {253, 254, 255}
_PRIORITIES = range(1, 32766)
_SYSCTL_MAX = {"arp_ignore": 8, "arp_announce": 2, "rp_filter": 2}


def _twice(wants: t.Sequence[Want], what: str, values: t.Sequence[t.Any]) -> list[Problem]:
    return [Problem(f"rails: {what} {value}", f"{count} rails", "one")
            for value, count in Counter(values).items() if count > 1]


def _between(wants: t.Sequence[Want]) -> list[Problem]:
    """Rails against each other."""
    found = [*_twice(wants, "number", [want.rail for want in wants]),
             *_twice(wants, "PCI address", [want.pci for want in wants])]
    routed = [want for want in wants if want.gateway]
    found += _twice(routed, "table", [want.table for want in routed])
    found += _twice(routed, "priority", [want.priority for want in routed])
    for position, one in enumerate(wants):
        for other in wants[position + 1:]:
            if one.version == other.version and one.interface.network.overlaps(other.interface.network):
                found.append(Problem(f"rails {one.rail} and {other.rail}", f"{one.address} and {other.address}",
                                     "a subnet for each rail", "in one subnet the wrong port answers"))
    return found


def _edge(want: Want) -> str | None:
    """Why the address is no host's; a subnet of two (or one) has neither network nor broadcast address."""
    network, address = want.interface.network, want.interface.ip
    if network.num_addresses <= 2:
        return None
    if address == network.network_address:
        return "the network's address" if want.version == 4 else "the routers' anycast address"
    return "the broadcast address" if want.version == 4 and address == network.broadcast_address else None


def _routing(want: Want) -> list[Problem]:
    if want.gateway is None:
        return []
    name, found = f"rail {want.rail}", []
    gateway = ipaddress.ip_address(want.gateway)
    if gateway not in want.interface.network:
        found.append(Problem(f"{name}: gateway", want.gateway, f"an address in {want.subnet}"))
    if gateway == want.interface.ip:
        found.append(Problem(f"{name}: gateway", want.gateway, "another address than the rail's own"))
    if want.table not in _TABLES or want.table in _KERNEL_TABLES:
        found.append(Problem(f"{name}: table", str(want.table), "1 to 4294967295, but not 253, 254, 255"))
    if want.priority not in _PRIORITIES:
        found.append(Problem(f"{name}: priority", str(want.priority), "1 to 32765, before the kernel's own rules"))
    return found


def values(request: Request) -> list[Problem]:
    """What can be told without the host."""
    found = [] if request.rails else [Problem("rails", "none", "one entry per rail")]
    for want in request.rails:
        if not PCI_ADDRESS.fullmatch(want.pci):
            found.append(Problem(f"rail {want.rail}: pci", repr(want.pci), "a PCI address such as 0000:03:00.0"))
        if want.rail < 0:
            found.append(Problem("rails", f"the number {want.rail}", "0 or more"))
        edge = _edge(want)
        if edge:
            found.append(Problem(f"rail {want.rail}: address", f"{want.address}, {edge}", "an address for a host"))
        found += _routing(want)
    for key, value in request.sysctls:
        if not 0 <= value <= _SYSCTL_MAX[key]:
            found.append(Problem(key, str(value), f"0 to {_SYSCTL_MAX[key]}"))
    return found or _between(request.rails)


def _port(request: Request, want: Want, node: Node) -> list[Problem]:
    port = node.ports.get(want.pci)
    if port is None or not port.present:
        return [Problem(want.pci, "no such PCI function", f"the port of rail {want.rail}",
                        "compare with lspci -D; the card may have fallen off the bus")]
    if port.is_vf:
        return [Problem(want.pci, "a virtual function", "a physical port", "a rail on a VF is not supported")]
    if not port.netdev:
        return [Problem(want.pci, "no netdev that can be told to be its own", "one netdev",
                        "its driver is not loaded, or the netdev is in another network namespace, or one of several")]
    name = f"{want.pci} ({port.netdev})"
    if not port.ethernet:
        return [Problem(name, "a port that is not Ethernet", "Ethernet", "LINK_TYPE is a firmware parameter")]
    return _link(request, want, node, name)


def _link(request: Request, want: Want, node: Node, name: str) -> list[Problem]:
    found, netdev = [], node.netdev(want.pci)
    reasons = net_plan.refusals(net_plan.uses(node.net).get(netdev), request.allow_management)
    if reasons:
        found.append(Problem(name, f"a port that {'; '.join(reasons)}", "a port used only as a rail",
                             net_plan.hint(reasons)))
    link = node.net.links.get(netdev)
    most = link.max_mtu_bytes if link else None
    if most is not None and want.mtu_bytes > most:
        found.append(Problem(name, f"MTU {want.mtu_bytes}", f"at most {most}, the device's maximum"))
    if want.mtu_bytes < IPV6_MIN_MTU_BYTES:
        found.append(Problem(name, f"MTU {want.mtu_bytes}", f"at least {IPV6_MIN_MTU_BYTES}",
                             "below it the kernel turns IPv6 off, and no RDMA MTU of use fits"))
    return found


def _sysctls(request: Request, want: Want, node: Node) -> list[Problem]:
    every = node.ports[want.pci].sysctls_all
    return [Problem(f"net.ipv4.conf.all.{key}", str(every[key]), f"at most {value}",
                    "the kernel takes the larger of `all` and the port; lower `all` in the file that sets it")
            for key, value in request.sysctls_of(want).items() if every.get(key, 0) > value]


def check(request: Request, node: Node) -> list[Problem]:
    found = values(request)
    if found:
        return found
    for want in request.rails:
        found += _port(request, want, node)
    found += node.problems
    if found:
        return list(dict.fromkeys(found))
    for want in request.rails:
        claim = detect.choose(request, node, node.netdev(want.pci))
        if claim.problem is not None:
            found.append(claim.problem)
        elif claim.owner is not None:
            found += detect.make(claim.owner, node).check(want)
        found += _sysctls(request, want, node)
    return list(dict.fromkeys(found))
