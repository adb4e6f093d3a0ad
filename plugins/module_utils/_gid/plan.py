# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which GID each port has for RoCE traffic, what is wrong, and the steps to RDMA-CM's mode. Pure."""
from __future__ import annotations

import ipaddress
import typing as t

from .._host.errors import Problem
from .._mlx5.model import PCI_ADDRESS, Device, Gid, Port, Step
from .model import ROCE_TYPES, Node, Request, Want

CONFIGFS = "/sys/kernel/config/rdma_cm"
TOOL = "cma_roce_mode"
_Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
# Of no use across a fabric unless a subnet asks for them by name: an address that the host made up for itself.
_OWN_ADDRESSES = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))


def mode_path(rdma_device: str, port: int) -> str:
    return f"{CONFIGFS}/{rdma_device}/ports/{port}/default_roce_mode"


def _port(device: Device | None) -> Port | None:
    return device.ports[0] if device is not None and device.ports else None


def _networks(want: Want) -> list[_Network]:
    return [ipaddress.ip_network(text) for text in want.subnets]


def _is_wanted(request: Request, want: Want, gid: Gid) -> bool:
    """Version, family and subnet; the index has no say."""
    if gid.type != ROCE_TYPES[request.version] or gid.family != request.family:
        return False
    address = ipaddress.ip_address(gid.address)
    networks = _networks(want)
    if not networks:
        return not any(address.version == own.version and address in own for own in _OWN_ADDRESSES)
    return any(address.version == network.version and address in network for network in networks)


def candidates(request: Request, want: Want, node: Node) -> list[Gid]:
    """GIDs of the port that fit; one is right."""
    port = _port(node.device(want.pci))
    return [gid for gid in port.gids if _is_wanted(request, want, gid)] if port else []


def _check_subnets(request: Request, want: Want) -> list[Problem]:
    found = []
    for text in want.subnets:
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            found.append(Problem(f"subnets of {want.pci}", repr(text), "a subnet such as 198.51.100.0/24", str(error)))
            continue
        if f"ipv{network.version}" != request.family:
            found.append(Problem(f"subnets of {want.pci}", text, f"a subnet of {request.family}",
                                 "address_family and subnets must agree"))
    return found


def _check_device(want: Want, node: Node, present: str) -> Problem | None:
    device = node.device(want.pci)
    port = _port(device)
    if device is None or port is None:
        return Problem(want.pci, "no such mlx5 port", "an mlx5 port's PCI address", f"there is: {present}")
    if device.rdma_device is None:
        return Problem(want.pci, "no RDMA device", "one, with a GID table",
                       "is mlx5_ib loaded, RoCE off in firmware (ROCE_CONTROL), or the bond's other port meant?")
    if port.link_layer != "Ethernet":
        return Problem(f"{want.pci} ({device.rdma_device})", f"link layer {port.link_layer}", "Ethernet",
                       "RoCE versions are a matter of Ethernet ports")
    return None


def check(request: Request, node: Node) -> list[Problem]:
    """What is wrong with the request, whatever the GIDs are."""
    found: list[Problem] = []
    seen: set[str] = set()
    present = ", ".join(device.pci for device in node.devices) or "no mlx5 device"
    for want in request.ports:
        if not PCI_ADDRESS.fullmatch(want.pci):
            found.append(Problem("ports", repr(want.pci), "a PCI address such as 0000:03:00.0"))
            continue
        if want.pci in seen:
            found.append(Problem(want.pci, "listed twice", "each PCI address once"))
            continue
        seen.add(want.pci)
        problem = _check_device(want, node, present)
        found += [problem] if problem else []
        found += _check_subnets(request, want)
    if request.roce_mode is not None and not found:
        found += _check_modes(request, node)
    return [*found, *node.problems] if found else []


def _check_modes(request: Request, node: Node) -> list[Problem]:
    found = []
    for want in request.ports:
        mode = node.modes.get(want.pci)
        if mode is None or mode.value is None:
            why = mode.why if mode else "not read"
            found.append(Problem(f"RDMA-CM mode of {want.pci}", why, f"{request.roce_mode} to be set there",
                                 "load rdma_cm and mount configfs, or leave roce_mode out"))
    return found


def _wanted_text(request: Request, want: Want) -> str:
    where = f" in {', '.join(want.subnets)}" if want.subnets else ""
    return f"one {ROCE_TYPES[request.version]} GID of an {request.family} address{where}"


def _entry(gid: Gid) -> str:
    return f"{gid.address} ({gid.type}, {gid.ndev or 'netdev elsewhere'}, index {gid.index})"


def lacking(request: Request, node: Node) -> list[Want]:
    return [want for want in request.ports if not candidates(request, want, node)]


def check_gids(request: Request, node: Node) -> list[Problem]:
    """Ports with none or several GIDs that fit, and which."""
    found = []
    for want in request.ports:
        fits, device = candidates(request, want, node), node.device(want.pci)
        port = _port(device)
        name = f"{want.pci} ({device.rdma_device if device else None})"
        if len(fits) > 1:
            found.append(Problem(name, f"{len(fits)}: {'; '.join(map(_entry, fits))}", _wanted_text(request, want),
                                 "say which by subnets"))
        elif not fits and request.must_have:
            table = "; ".join(map(_entry, port.gids)) if port and port.gids else "nothing"
            netdev = port.netdev if port else None
            found.append(Problem(name, f"none within {request.wait_seconds:g} s; the table has: {table}",
                                 _wanted_text(request, want), f"has {netdev} its address?"))
    return found


def plan(request: Request, node: Node) -> list[Step]:
    """One step for each port whose mode differs."""
    steps = []
    for want in request.ports:
        device, mode = node.device(want.pci), node.modes.get(want.pci)
        port = _port(device)
        if request.roce_mode is None or device is None or port is None or device.rdma_device is None:
            continue
        if mode is None or mode.value == request.roce_mode:
            continue
        if node.door == TOOL:
            command: tuple[str, ...] = (TOOL, "-d", device.rdma_device, "-p", str(port.port), "-m",
                                        request.roce_mode[1:])
            text = ""
        else:
            command, text = ("write", mode_path(device.rdma_device, port.port)), ROCE_TYPES[request.roce_mode]
        steps.append(Step(command, "none", f"RDMA-CM mode is {mode.value}", want.pci, text))
    return steps


def verify(request: Request, node: Node) -> list[Problem]:
    """Modes that are not as wanted although every step reported success."""
    if request.roce_mode is None:
        return []
    return [Problem(f"RDMA-CM mode of {want.pci}", str(node.modes[want.pci].value or node.modes[want.pci].why),
                    request.roce_mode, "the write reported success; read back")
            for want in request.ports if node.modes[want.pci].value != request.roce_mode]


def state(request: Request, node: Node) -> list[dict[str, t.Any]]:
    return [{"pci": want.pci, "roce_mode": node.modes[want.pci].value if want.pci in node.modes else None}
            for want in request.ports]


def predict(request: Request, node: Node) -> list[dict[str, t.Any]]:
    found = state(request, node)
    for entry in found:
        entry["roce_mode"] = request.roce_mode or entry["roce_mode"]
    return found


def details(request: Request, node: Node) -> list[dict[str, t.Any]]:
    """Each port with its one GID; null where it has none and may have none."""
    found = []
    for want in request.ports:
        device, fits = node.device(want.pci), candidates(request, want, node)
        port, gid = _port(device), fits[0] if len(fits) == 1 else None
        mode = node.modes.get(want.pci)
        found.append({
            "pci": want.pci,
            "rdma_device": device.rdma_device if device else None,
            "port": port.port if port else None,
            "netdev": gid.ndev if gid else port.netdev if port else None,
            "gid": gid.gid if gid else None,
            "index": gid.index if gid else None,
            "type": gid.type if gid else None,
            "family": gid.family if gid else None,
            "address": gid.address if gid else None,
            "roce_mode": mode.value if mode else None,
            "roce_mode_why": (mode.why or None) if mode else None,
        })
    return found


def moved(before: t.Any, now: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Ports whose GID or its index is another than in the earlier result; ``before`` is its ``ports``."""
    earlier = {entry.get("pci"): entry for entry in before if isinstance(entry, t.Mapping)} \
        if isinstance(before, list) else {}
    found = []
    for entry in now:
        old = earlier.get(entry["pci"])
        if old is None or old.get("gid") is None:
            continue
        if (old.get("gid"), old.get("index")) != (entry["gid"], entry["index"]):
            keys = ("gid", "index", "netdev")
            found.append({"pci": entry["pci"], "before": {key: old.get(key) for key in keys},
                          "now": {key: entry[key] for key in keys}})
    return found
