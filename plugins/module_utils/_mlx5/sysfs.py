# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read mlx5 devices from sysfs: PCI function -> RDMA device -> port -> netdev."""
from __future__ import annotations

import dataclasses
import re

from .._host.errors import Problem
from .._host.sysfs import Sysfs
from . import parse
from .model import VENDOR_ID, Device, Gid, Netdev, Port

_PCI = "bus/pci/devices"
_IFF_UP = 1
# ARPHRD_ETHER and ARPHRD_INFINIBAND [Linux include/uapi/linux/if_arp.h].
_LINK_LAYERS = {1: "Ethernet", 32: "InfiniBand"}
_UPLINK = re.compile(r"p\d+")


def read_netdev(sysfs: Sysfs, name: str) -> Netdev:
    base = f"class/net/{name}"
    flags = sysfs.number(f"{base}/flags")
    return Netdev(
        name=name,
        admin_state=None if flags is None else "up" if flags & _IFF_UP else "down",
        oper_state=sysfs.read(f"{base}/operstate").or_none(),
        mac=sysfs.read(f"{base}/address").or_none(),
        mtu_bytes=sysfs.number(f"{base}/mtu"),
        link_layer=_LINK_LAYERS.get(sysfs.number(f"{base}/type") or 0),
    )


def choose_netdev(sysfs: Sysfs, netdevs: tuple[str, ...], port_path: str | None, port: int) -> str | None:
    """The port's own netdev among those of its function, which may include VF representors and sub-functions.

    The kernel's own answer first (the netdev of GID 0), then the uplink's port name, then the port number.
    """
    if port_path is not None:
        owner = sysfs.read(f"{port_path}/gid_attrs/ndevs/0").value
        if owner in netdevs:
            return owner
    if len(netdevs) <= 1:
        return netdevs[0] if netdevs else None
    uplinks = [name for name in netdevs if _UPLINK.fullmatch(sysfs.read(f"class/net/{name}/phys_port_name").value)]
    candidates = uplinks or [name for name in netdevs if sysfs.number(f"class/net/{name}/dev_port") == port - 1]
    return candidates[0] if len(candidates) == 1 else None


def read_gids(sysfs: Sysfs, port_path: str) -> tuple[Gid, ...]:
    """Used entries of the GID table. EINVAL for type or netdev means that the slot is empty or not ours."""
    found = []
    for name in sysfs.names(f"{port_path}/gids"):
        text = sysfs.read(f"{port_path}/gids/{name}").value
        if not name.isdigit() or not parse.is_gid_used(text):
            continue
        kind = sysfs.read(f"{port_path}/gid_attrs/types/{name}")
        ndev = sysfs.read(f"{port_path}/gid_attrs/ndevs/{name}")
        if kind.state == "ok":
            found.append(parse.gid(int(name), text, kind.or_none(), ndev.or_none()))
    return tuple(found)


def _port(sysfs: Sysfs, rdma: str | None, number: int, netdevs: tuple[str, ...]) -> Port:
    path = f"class/infiniband/{rdma}/ports/{number}" if rdma else None
    name = choose_netdev(sysfs, netdevs, path, number)
    netdev = read_netdev(sysfs, name) if name else Netdev("")
    port = Port(number, link_layer=netdev.link_layer, netdev=name, admin_state=netdev.admin_state,
                oper_state=netdev.oper_state, mac=netdev.mac, mtu_bytes=netdev.mtu_bytes)
    if path is None:
        return port
    state, rate = parse.numbered(sysfs.read(f"{path}/state").value), sysfs.read(f"{path}/rate").value
    return dataclasses.replace(
        port, state=state, phys_state=parse.numbered(sysfs.read(f"{path}/phys_state").value), rate=rate or None,
        speed_gbps=parse.speed_gbps(rate, state), gids=read_gids(sysfs, path),
        link_layer=sysfs.read(f"{path}/link_layer").or_none() or netdev.link_layer,
    )


def _device(sysfs: Sysfs, pci: str, rdma: str | None, netdevs: tuple[str, ...]) -> Device:
    base = f"{_PCI}/{pci}"
    numbers = [int(name) for name in sysfs.names(f"class/infiniband/{rdma}/ports") if name.isdigit()] if rdma else []
    if not numbers and netdevs:
        numbers = [1]
    node = sysfs.number(f"{base}/numa_node")
    vendor, device = (sysfs.read(f"{base}/{name}").value[2:] for name in ("vendor", "device"))
    return Device(
        pci=pci, pci_id=f"{vendor}:{device}", numa_node=None if node is None or node < 0 else node,
        driver=sysfs.link_name(f"{base}/driver"), is_vf="physfn" in sysfs.names(base),
        firmware_version=sysfs.read(f"class/infiniband/{rdma}/fw_ver").or_none() if rdma else None,
        psid=sysfs.read(f"class/infiniband/{rdma}/board_id").or_none() if rdma else None,
        rdma_device=rdma, netdevs=netdevs, ports=tuple(_port(sysfs, rdma, number, netdevs) for number in numbers),
    )


def read_devices(sysfs: Sysfs) -> tuple[tuple[Device, ...], list[Problem]]:
    """All mlx5 functions with an RDMA device or a netdev, in the order of their PCI addresses."""
    found, problems = [], []
    for pci in sorted(sysfs.names(_PCI)):
        if sysfs.read(f"{_PCI}/{pci}/vendor").value != VENDOR_ID:
            continue
        rdma = sysfs.names(f"{_PCI}/{pci}/infiniband")
        netdevs = tuple(sysfs.names(f"{_PCI}/{pci}/net"))
        if rdma or netdevs:
            found.append(_device(sysfs, pci, rdma[0] if rdma else None, netdevs))
        if len(rdma) > 1:
            problems.append(Problem(pci, f"RDMA devices {', '.join(rdma)}", "one", f"only {rdma[0]} was looked at"))
    problems += [Problem(f"/sys/{path}", error, "a readable file", "the device or what emulates it is in trouble")
                 for path, error in sysfs.errors.items()]
    return tuple(found), problems
