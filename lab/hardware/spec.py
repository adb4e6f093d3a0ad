# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hardware a host has: a class's shape from a data file, with the host's own MACs and GUIDs.

The file reader needs PyYAML and runs in ``lab up``; the hardware model gets the result as JSON.
"""
from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHAPES = Path(__file__).parent / "shapes"
VENDOR_ID = "0x15b3"
# An address block of the vendor (IEEE registry: Mellanox Technologies), so that EUI-64 addresses and
# GIDs look like a ConnectX port's and stay the same over reboots (simulation.md 0.7).
MAC_PREFIX = (0xB8, 0x3F, 0xD2)
PCI_ADDRESS = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


@dataclass(frozen=True)
class RailSpec:
    """One mlx5 port used as a rail: one PCI function, one RDMA device, one netdev."""

    pci: str
    netdev: str
    rdma: str
    numa_node: int
    rate_gbps: float
    mac: str
    device_id: str
    hca_type: str
    board_id: str
    firmware: str
    pcie_speed: str
    pcie_width: int

    @property
    def pci_root(self) -> str:
        """The root bus's folder below /sys/devices, for example ``pci0002:03``."""
        return f"pci{self.pci[:7]}"

    @property
    def pci_path(self) -> str:
        return f"devices/{self.pci_root}/{self.pci}"

    @property
    def guid(self) -> str:
        """Node GUID in sysfs' form: the MAC with 0x0300 in the middle (as the vendor's adapters have it)."""
        digits = self.mac.replace(":", "")
        text = f"{digits[:6]}0300{digits[6:]}"
        return ":".join(text[at:at + 4] for at in range(0, 16, 4))


@dataclass(frozen=True)
class NodeSpec:
    name: str
    node_class: str
    rails: tuple[RailSpec, ...]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> NodeSpec:
        return cls(data["name"], data["node_class"], tuple(RailSpec(**rail) for rail in data["rails"]))


def shape_names() -> list[str]:
    return sorted(path.stem for path in SHAPES.glob("*.yml"))


def node_spec(node_class: str, name: str, number: int) -> NodeSpec:
    """The hardware of host ``name``, the ``number``-th of its fleet (1 to 255)."""
    import yaml  # not at the top: the hardware model's process has no use for it

    data = yaml.safe_load((SHAPES / f"{node_class}.yml").read_text(encoding="utf-8"))
    rails = []
    for index, rail in enumerate(data["rails"]):
        if not PCI_ADDRESS.match(rail["pci"]):
            raise ValueError(f"{node_class}: rails[{index}].pci: got {rail['pci']!r}, wanted DDDD:BB:DD.F")
        mac = ":".join(f"{byte:02x}" for byte in (*MAC_PREFIX, 0, number, index))
        rails.append(RailSpec(mac=mac, **rail, **data["adapter"]))
    return NodeSpec(name, node_class, tuple(rails))


def load_shape(node_class: str) -> NodeSpec:
    """The shape alone, for questions that no host's number changes."""
    return node_spec(node_class, node_class, 1)
