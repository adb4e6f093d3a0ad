# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""mlx5 devices of a node as they are, and what a call wants of their ports."""
from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass, field

from .._host.errors import Problem
from .._idle.model import Policy
from .._networkd.model import Networkd
from .tuning import Have, Value

VENDOR_ID = "0x15b3"
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# The kernel takes the netdev MTU less GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28 and ICRC 4 bytes, and uses
# the largest IB MTU that fits [Linux include/rdma/ib_addr.h, iboe_get_mtu].
ROCE_HEADER_BYTES = 96
IB_MTUS_BYTES = (4096, 2048, 1024, 512, 256)
MIN_MTU_BYTES = ROCE_HEADER_BYTES + IB_MTUS_BYTES[-1]

Disruptive = t.Literal["none", "link"]


def rdma_mtu_bytes(netdev_mtu_bytes: int) -> int:
    """RDMA MTU that this netdev MTU gives; 0 where none fits."""
    return next((mtu for mtu in IB_MTUS_BYTES if mtu <= netdev_mtu_bytes - ROCE_HEADER_BYTES), 0)


def netdev_mtu_needed_bytes(rdma_bytes: int) -> int:
    """Smallest netdev MTU that gives this RDMA MTU."""
    return rdma_bytes + ROCE_HEADER_BYTES


@dataclass(frozen=True)
class Gid:
    """An entry of a port's GID table. The index is a fact of this moment, never a setting."""

    index: int
    gid: str
    type: str | None
    ndev: str | None
    family: str
    address: str


@dataclass(frozen=True)
class Netdev:
    name: str
    admin_state: str | None = None
    oper_state: str | None = None
    mac: str | None = None
    mtu_bytes: int | None = None
    link_layer: str | None = None


@dataclass(frozen=True)
class Upper:
    """A VLAN on a port or on its bond."""

    name: str
    parent: str
    mtu_bytes: int | None = None


@dataclass(frozen=True)
class Port:
    """An RDMA port with its netdev. Without an RDMA device (mlx5_ib not loaded) the RDMA values are None."""

    port: int
    state: str | None = None
    phys_state: str | None = None
    rate: str | None = None
    speed_gbps: float | None = None
    link_layer: str | None = None
    netdev: str | None = None
    admin_state: str | None = None
    oper_state: str | None = None
    mac: str | None = None
    mtu_bytes: int | None = None
    max_mtu_bytes: int | None = None
    rdma_mtu_bytes: int | None = None
    gids: tuple[Gid, ...] = ()
    excluded: str | None = None
    network_file: str | None = None
    saved_mtu_bytes: int | None = None
    saved_mtu_file: str | None = None
    # The bond that the netdev is a member of, with its MTU and members; the VLANs on either.
    bond: str | None = None
    bond_mtu_bytes: int | None = None
    bond_members: tuple[str, ...] = ()
    vlans: tuple[Upper, ...] = ()

    @property
    def mtu_netdev(self) -> str | None:
        """The netdev whose MTU is set: a bond hands its own to its members."""
        return self.bond or self.netdev


@dataclass(frozen=True)
class Device:
    """A PCI function. ``numa_node`` is None where the firmware names none (-1 in sysfs)."""

    pci: str
    pci_id: str | None = None
    numa_node: int | None = None
    driver: str | None = None
    is_vf: bool = False
    firmware_version: str | None = None
    psid: str | None = None
    rdma_device: str | None = None
    netdevs: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True)
class Node:
    """All that one read gives. The three kinds of problems differ in what they forbid: see ``plan.check``."""

    devices: tuple[Device, ...] = ()
    networkd: Networkd = field(default_factory=Networkd)
    device_problems: tuple[Problem, ...] = ()
    use_problems: tuple[Problem, ...] = ()
    rdma_problems: tuple[Problem, ...] = ()
    # Settings beside the MTU by PCI address, as far as they were asked for.
    settings: dict[str, Have] = field(default_factory=dict)

    @property
    def problems(self) -> tuple[Problem, ...]:
        own = (self.networkd.problem,) if self.networkd.problem else ()
        return (*self.device_problems, *self.use_problems, *self.rdma_problems, *own)

    def device(self, pci: str) -> Device | None:
        return next((device for device in self.devices if device.pci == pci), None)

    def port(self, pci: str) -> Port | None:
        """The port of a function; an mlx5 function has one."""
        device = self.device(pci)
        return device.ports[0] if device and device.ports else None

    def as_data(self, rails: t.Sequence[str] = ()) -> dict[str, t.Any]:
        """What mlx5_info returns; ``rails`` are PCI addresses in rail order."""
        number = {pci: rail for rail, pci in enumerate(rails)}
        devices = [{**asdict(device), "rail": number.get(device.pci)} for device in self.devices]
        missing = [Problem(pci, "no mlx5 device", f"rail {rail}")
                   for pci, rail in number.items() if self.device(pci) is None]
        problems = [problem.as_dict() for problem in (*self.problems, *missing)]
        return {"devices": devices, "problems": problems}


@dataclass(frozen=True)
class Want:
    """None and a setting that is not there are left alone."""

    pci: str
    mtu_bytes: int | None = None
    rdma_mtu_bytes: int | None = None
    settings: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    ports: tuple[Want, ...]
    runtime: bool = True
    persistent: bool = True
    verify_rdma_mtu: bool = True
    disruption_policy: Policy = "if_idle"
    allow_management: bool = False
    # How long the undo waits for the controller; 0: none is armed.
    revert_seconds: float = 0


@dataclass(frozen=True)
class Step:
    """One mutation. ``command`` is an argv list, or ("write", path) with ``text``, or ("remove", path)."""

    command: tuple[str, ...]
    disruptive: Disruptive
    why: str
    pci: str | None = None
    text: str = ""
    wait_for: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": self.disruptive, "why": self.why, "pci": self.pci}
