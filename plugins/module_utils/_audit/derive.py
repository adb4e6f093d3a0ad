# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From the records of one host to the values of `facts.Rail`. Pure and total: what is not there is not known."""
from __future__ import annotations

import functools
import ipaddress
import typing as t

from . import derive_qos
from .expect import RailWant, Want
from .facts import Place, Rail

Data = t.Mapping[str, t.Any]
_NOTHING: Data = {}
_MANAGEMENT = ("default route", "SSH connection")


class Records(t.NamedTuple):
    """``data`` of the kinds that are about ports, by PCI address or netdev. Empty where there is no record."""

    devices: t.Mapping[str, Data]
    ports: t.Mapping[str, Data] = {}
    qos: t.Mapping[str, Data] = {}
    gids: t.Mapping[str, Data] = {}
    nvconfig: t.Mapping[str, Data] = {}
    netdevs: t.Mapping[str, Data] | None = None
    chassis: t.Mapping[str, str] = {}
    # Of the host's rules and of its numbered routes, as `_rail.model` writes them; None: not read.
    rules: t.Collection[str] | None = None
    routes: t.Mapping[str, t.Collection[str]] = {}
    pause: t.Mapping[str, str] = {}


@functools.lru_cache(maxsize=4096)
def version(text: str | None) -> tuple[int, ...] | None:
    parts = (text or "").split(".")
    return tuple(map(int, parts)) if text and all(part.isdigit() for part in parts) else None


@functools.lru_cache(maxsize=65536)
def _in(address: str, subnet: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(subnet)
    except (ValueError, TypeError):
        return False


def _planned(place: RailWant) -> str | None:
    return place.address.partition("/")[0] if place.address else None


class _Gids(t.NamedTuple):
    """Entries of a port's table: the rail's own (with its first index), those that NCCL may take, all addresses."""

    own: int
    first: int | None
    candidates: int
    addresses: tuple[str, ...]


def _gids(port: Data, place: RailWant) -> _Gids:
    want, planned = place.want, _planned(place)
    netdevs = (None, port.get("netdev"), port.get("bond"))
    own, candidates, addresses, index = 0, 0, [], None
    for gid in port.get("gids") or ():
        address, family, kind = gid.get("address"), gid.get("family"), gid.get("type")
        if family == "ipv6" and str(address).startswith("fe80:"):
            continue
        if address not in addresses and gid.get("ndev") in netdevs:
            addresses.append(address)
        if kind == "RoCE v2" and family == want.nccl_family and (not want.nccl_range or _in(address, want.nccl_range)):
            candidates += 1
        if kind == want.version and gid.get("ndev") in netdevs and _is_own(address, family, planned, want):
            own, index = own + 1, gid.get("index") if index is None else index
    return _Gids(own, index, candidates, tuple(addresses))


def _is_own(address: str, family: str, planned: str | None, want: Want) -> bool:
    if planned is not None:
        return address == planned
    return family == want.family and (not want.subnets or any(_in(address, subnet) for subnet in want.subnets))


def _gid_fields(
    port: Data, own: Data, place: RailWant, before: Data, addresses: tuple[str, ...], gids: _Gids,
) -> dict[str, t.Any]:
    """Where the table is not known (no RDMA device) the address may still be."""
    want, planned = place.want, _planned(place)
    known = bool(port.get("gids"))
    found: dict[str, t.Any] = {
        "gids_own": gids.own if want.version and known else None,
        "gids_candidate": gids.candidates if want.version == "RoCE v2" and known else None,
        "gid_index": gids.first,
        "has_address": planned in addresses if planned else None,
    }
    if gids.first is not None and before.get("address") == planned and before.get("type") == want.version:
        found["gid_index_before"] = before.get("index")
    mode = before.get("roce_mode")
    found["cm_mode"] = (own.get("rdma_cm") or _NOTHING).get("roce_mode") or mode
    return found


def _other_rail(place: RailWant, addresses: tuple[str, ...], subnets: t.Mapping[int, str]) -> str | None:
    """The rail in whose subnet this one's address is, where it is not in its own."""
    if not place.subnet or not addresses or _planned(place) in addresses:
        return None
    if any(_in(address, place.subnet) for address in addresses):
        return None
    return next((str(rail) for rail, subnet in subnets.items() if rail != place.rail
                 and any(_in(address, subnet) for address in addresses)), None)


def _port_fields(device: Data, port: Data, own: Data, want: Want) -> dict[str, t.Any]:
    link, excluded = device.get("pcie") or _NOTHING, port.get("excluded") or None
    managing = excluded is not None and any(text in excluded for text in _MANAGEMENT)
    width, speed = link.get("current_width"), link.get("current_speed_gts")
    ethernet = port.get("link_layer") in (None, "Ethernet")
    vlans = [f"{vlan.get('name')} with MTU {vlan.get('mtu_bytes')} on {vlan.get('parent')} with {port.get('mtu_bytes')}"
             for vlan in port.get("vlans") or () if (vlan.get("mtu_bytes") or 0) < (port.get("mtu_bytes") or 0)]
    firmware = device.get("firmware_version")
    least = dict(want.firmware_min)
    floor = least.get(str(device.get("psid"))) or least.get(str(device.get("pci_id"))) if least else None
    return {
        "is_vf": device.get("is_vf"), "dpu_mode": own.get("dpu_mode"), "bond": port.get("bond"),
        "management": excluded if managing and not want.management else None,
        "shared": excluded if not managing and not port.get("bond") else None,
        "link_layer": port.get("link_layer"), "state": port.get("state"),
        "speed_gbps": port.get("speed_gbps") if port.get("state") == "ACTIVE" else None,
        "pcie_width": width, "pcie_speed_gts": speed,
        "pcie_text": f"{speed:g} GT/s x{width}" if speed and width else None,
        "mtu": port.get("mtu_bytes") if ethernet else None,
        "rdma_mtu": port.get("rdma_mtu_bytes") if ethernet else None,
        "vlans_low": "; ".join(vlans) or None,
        "firmware": version(firmware), "firmware_text": firmware,
        "firmware_min": version(floor), "firmware_min_text": floor,
    }


def _saved_fields(port: Data, want: Want, net: Data | None) -> dict[str, t.Any]:
    """networkd's saved MTU comes with every record, what another owner has saved with `fabric` only."""
    if not want.saved:
        return {}
    saved = (net or _NOTHING).get("saved")
    if port.get("network_file"):
        return {"saves": True, "saved_mtu": port.get("saved_mtu_bytes") or "none"}
    if saved:
        return {"saves": True, "saved_mtu": saved.get("mtu_bytes") or "none"}
    return {}


def _network_fields(net: Data | None, want: Want) -> dict[str, t.Any]:
    if net is None:
        return {}
    owners, sysctls, saved = net.get("owners") or (), net.get("sysctls") or _NOTHING, net.get("saved") or _NOTHING
    ignore, announce = sysctls.get("arp_ignore"), sysctls.get("arp_announce")
    found: dict[str, t.Any] = {"owners": " and ".join(owners) if len(owners) > 1 else None,
                               "volatile": net.get("volatile")}
    if want.arp is not None and ignore is not None:
        found.update(arp=f"{ignore}, {announce}", rp_filter=sysctls.get("rp_filter"))
    if want.carrier:
        found["keeps_carrier"] = saved.get("ignore_carrier")
    return found


def _routes_missing(place: RailWant, netdev: str, records: Records) -> int | None:
    if not place.routing or records.rules is None:
        return None
    routes = records.routes.get(netdev, ())
    return sum(text not in records.rules and text not in routes for text in place.routing) or None


def _nv_fields(device: Data) -> dict[str, t.Any]:
    found: dict[str, list[str]] = {"nv_wrong": [], "nv_pending": [], "nv_unknown": []}
    for one in device.get("parameters") or ():
        if one.get("state") == "unknown":
            found["nv_unknown"].append(str(one.get("name")))
        elif one.get("state") == "differs":
            found["nv_wrong"].append(f"{one.get('name')} is {one.get('next')}, wanted {one.get('wanted')},")
        elif one.get("state") in ("pending", "waiting"):
            found["nv_pending"].append(f"{one.get('name')}={one.get('wanted')}")
    return {name: " ".join(texts) or None for name, texts in found.items()}


def place(want: RailWant, records: Records, subnets: t.Mapping[int, str]) -> Place:
    device = records.devices.get(want.pci)
    if device is None:
        return Place(want.rail, Rail(present=False), want.key, "", subnet=want.subnet)
    ports = device.get("ports") or ()
    port: Data = ports[0] if ports else _NOTHING
    netdev, own = str(port.get("netdev") or ""), records.ports.get(want.pci, _NOTHING)
    net = None if records.netdevs is None else records.netdevs.get(netdev, _NOTHING)
    gids = _gids(port, want)
    addresses = gids.addresses
    if net and net.get("addresses"):
        addresses = tuple(dict.fromkeys([*(text.partition("/")[0] for text in net["addresses"]), *addresses]))
    facts = Rail(
        **_port_fields(device, port, own, want.want), **_saved_fields(port, want.want, net),
        **_network_fields(net, want.want),
        **_gid_fields(port, own, want, records.gids.get(want.pci, _NOTHING), addresses, gids),
        **derive_qos.fields(port, own, records.qos.get(want.pci, _NOTHING), records.pause.get(want.pci), want.want),
        **_nv_fields(records.nvconfig.get(want.pci, _NOTHING)),
        leaf=records.chassis.get(netdev) if want.want.leaf else None,
        other_rail=_other_rail(want, addresses, subnets), routes_missing=_routes_missing(want, netdev, records))
    return Place(want.rail, facts, want.key, netdev, addresses, port.get("mac"), records.chassis.get(netdev),
                 want.subnet, f"{device.get('psid') or device.get('pci_id')}")
