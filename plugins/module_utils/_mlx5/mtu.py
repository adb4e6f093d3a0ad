# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""MTU of ports with their bonds and VLANs, and the RDMA MTU that is asked for. Pure."""
from __future__ import annotations

from .._host.errors import Problem
from .model import IB_MTUS_BYTES, Node, Port, Request, Step, Want, netdev_mtu_needed_bytes, rdma_mtu_bytes


def _set(netdev: str, mtu: int, now: int | None, pci: str) -> Step:
    # mlx5e reopens its channels: traffic stops for a moment [mlx5 en_main.c, mlx5e_change_mtu].
    return Step(("ip", "link", "set", "dev", netdev, "mtu", str(mtu)), "link", f"MTU is {now}", pci)


def _own(want: Want, port: Port, mtu: int) -> list[Step]:
    """The port, or its bond, whose members follow by themselves [Linux bond_main.c, bond_change_mtu]."""
    if port.bond and port.bond_mtu_bytes != mtu:
        return [_set(port.bond, mtu, port.bond_mtu_bytes, want.pci)]
    if port.netdev and port.mtu_bytes != mtu:
        return [_set(port.netdev, mtu, port.mtu_bytes, want.pci)]
    return []


def steps(request: Request, node: Node) -> list[Step]:
    """A VLAN is never above its parent: lower VLANs go down before it, the others up after it."""
    found: dict[str, Step] = {}
    for want in request.ports:
        port, mtu = node.port(want.pci), want.mtu_bytes
        if port is None or mtu is None:
            continue
        above = [vlan for vlan in port.vlans if vlan.mtu_bytes is not None]
        down = [vlan for vlan in reversed(above) if (vlan.mtu_bytes or 0) > mtu]
        up = [vlan for vlan in above if (vlan.mtu_bytes or 0) < mtu]
        for step in (*(_set(vlan.name, mtu, vlan.mtu_bytes, want.pci) for vlan in down), *_own(want, port, mtu),
                     *(_set(vlan.name, mtu, vlan.mtu_bytes, want.pci) for vlan in up)):
            # Both members of a bond bring the bond's steps.
            found.setdefault(step.command[4], step)
    return list(found.values())


def bond_problems(request: Request, node: Node) -> list[Problem]:
    """A bond has one MTU: all of its members must be listed, with the same value."""
    wanted = {port.netdev: want.mtu_bytes for want in request.ports if (port := node.port(want.pci))}
    found = []
    for want in request.ports:
        port = node.port(want.pci)
        if port is None or port.bond is None:
            continue
        others = [f"{name} (wants {wanted[name]})" if name in wanted else f"{name} (not listed)"
                  for name in port.bond_members if name not in wanted or wanted[name] != want.mtu_bytes]
        if others:
            found.append(Problem(f"{want.pci} ({port.netdev})", f"a member of {port.bond} with {', '.join(others)}",
                                 "all members of a bond listed, with the same mtu_bytes"))
    return found


def rdma_problem(want: Want, port: Port) -> Problem | None:
    """Whether the netdev MTU, wanted or as it is, gives the RDMA MTU that is asked for."""
    mtu, asked = want.mtu_bytes or port.mtu_bytes or 0, want.rdma_mtu_bytes
    if asked is None or rdma_mtu_bytes(mtu) == asked:
        return None
    least = netdev_mtu_needed_bytes(asked)
    larger = [size for size in IB_MTUS_BYTES if size > asked]
    most = f" and at most {netdev_mtu_needed_bytes(min(larger)) - 1}" if larger else ""
    return Problem(f"{want.pci} ({port.netdev})", f"netdev MTU {mtu}, which gives RDMA MTU {rdma_mtu_bytes(mtu)}",
                   f"a netdev MTU of at least {least}{most}, for RDMA MTU {asked}",
                   "RoCE has no MTU of its own; change mtu_bytes")


def rdma_port(node: Node, pci: str) -> Port | None:
    """The port that shows the RDMA MTU: while a bond is one RDMA device, the one of its members that has it."""
    port, device = node.port(pci), node.device(pci)
    if port is None or port.bond is None or (device is not None and device.rdma_device):
        return port
    for other in node.devices:
        if other.rdma_device and other.ports and other.ports[0].bond == port.bond:
            return other.ports[0]
    return port


def verify(request: Request, node: Node) -> list[Problem]:
    """VLANs that did not follow."""
    found = []
    for want in request.ports:
        port = node.port(want.pci)
        for vlan in port.vlans if port is not None and want.mtu_bytes is not None else ():
            if vlan.mtu_bytes is not None and vlan.mtu_bytes != want.mtu_bytes:
                found.append(Problem(f"MTU of {vlan.name} on {vlan.parent}", str(vlan.mtu_bytes), str(want.mtu_bytes),
                                     "the tools reported success; read back after all steps"))
    return list(dict.fromkeys(found))
