# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hardware a host has: a class's shape (shapes/*.yml) with addresses filled in for one host.

The launcher and the controller read shapes (PyYAML); the daemon gets the finished NodeSpec as JSON.
"""
from __future__ import annotations

import json
import re
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

SHAPES = Path(__file__).resolve().parent / "shapes"
PCI = re.compile(r"([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
# 24 bits below the vendor's prefix: 20 for the host, 4 for the rail.
RAIL_BITS = 4
# BlueField-2, -3 and -4 (mlx5-roce 5.6; host-setup 4).
BLUEFIELD = ("0xa2d6", "0xa2dc", "0xa2df")
IFNAMSIZ_USABLE = 15


class SpecError(ValueError):
    """A shape or a specification that cannot be; the message names file and key."""


@dataclass(frozen=True)
class FunctionSpec:
    """One PCI function below a root port of its own."""

    pci: str
    root: str
    bridge: str
    bridge_vendor: str
    bridge_device: str
    vendor: str
    device: str
    subsystem_vendor: str
    subsystem_device: str
    pci_class: str
    revision: str
    pcie_speed: str
    pcie_width: str
    numa_node: int
    local_cpulist: str
    irq: int

    @property
    def pci_dir(self) -> str:
        """The PCI function's directory below /sys."""
        return f"devices/{self.root}/{self.bridge}/{self.pci}"

    @property
    def link(self) -> tuple[str, str]:
        """Speed and width that the PCIe link has; what the card could have stands in its own fields."""
        return self.pcie_speed, self.pcie_width


@dataclass(frozen=True)
class GpuSpec(FunctionSpec):
    """A GPU: its function, and what the driver says of it. ``open_only``: the proprietary module does not drive it."""

    gpu: int
    model: str
    open_only: bool


@dataclass(frozen=True)
class RailSpec(FunctionSpec):
    """One mlx5 function with one port, as PCI, netdev and RDMA device."""

    rail: int
    netdev: str
    rdma: str
    fw_ver: str
    board_id: str
    hca_type: str
    node_desc: str
    rate_gbps: int
    lanes: int
    lane_speed: str
    mac: str
    node_guid: str
    # As mstconfig shows the card; "N/A" where no capture has it.
    card_type: str
    card_name: str
    card_description: str
    # Whether it has a link type to choose, and next-boot values that somebody set before delivery, by number.
    vpi: bool
    delivered: dict[str, int]
    # What the PCIe link came up with, where it is less or more than usual (state.py, CHANGES).
    trained_speed: str = ""
    trained_width: str = ""
    # Parameters that this firmware does not know (mlx5-roce 5.1: "names depend on firmware").
    firmware_lacks: list[str] = field(default_factory=list)

    @property
    def link(self) -> tuple[str, str]:
        return self.trained_speed or self.pcie_speed, self.trained_width or self.pcie_width

    @property
    def bluefield(self) -> bool:
        return self.device in BLUEFIELD

    @property
    def uverbs(self) -> str:
        return f"uverbs{self.rail}"


@dataclass(frozen=True)
class NodeSpec:
    """All emulated hardware of one host."""

    class_name: str
    host_name: str
    host_index: int
    rails: tuple[RailSpec, ...]
    # The NIC keeps its power through an OS reboot (mlx5-roce 5.5).
    bmc_powered: bool
    gpus: tuple[GpuSpec, ...] = ()

    @property
    def functions(self) -> tuple[FunctionSpec, ...]:
        return (*self.rails, *self.gpus)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> NodeSpec:
        data = json.loads(text)
        try:
            return cls(**{**data, "rails": tuple(RailSpec(**rail) for rail in data["rails"]),
                          "gpus": tuple(GpuSpec(**gpu) for gpu in data.get("gpus", ()))})
        except (KeyError, TypeError) as error:
            raise SpecError(f"not a node specification: {error}") from error


def udev_name(pci: str, port: str = "p0") -> str:
    """udev's path name of a multi-function NIC's port: decimal numbers, no domain when it is 0."""
    match = PCI.fullmatch(pci)
    if match is None:
        raise SpecError(f"{pci!r} is not a PCI address like 0002:03:00.0")
    domain, bus, slot, function = (int(part, 16) for part in match.groups())
    return f"en{f'P{domain}' if domain else ''}p{bus}s{slot}f{function}n{port}"


def mac_address(prefix: str, host_index: int, rail: int) -> str:
    """The same address at every boot, so that EUI-64 GIDs are stable (simulation.md 0.7)."""
    if not 0 <= host_index < 1 << (24 - RAIL_BITS) or not 0 <= rail < 1 << RAIL_BITS:
        raise SpecError(f"no address for host {host_index} rail {rail}: 20 bits of host and {RAIL_BITS} of rail fit")
    low = f"{host_index << RAIL_BITS | rail:06x}"
    return f"{prefix}:{low[:2]}:{low[2:4]}:{low[4:]}"


def node_guid(mac: str) -> str:
    """mlx5 puts 03:00 into the middle of the MAC (prototype simsysfs.py: b83f:d203:00aa:0000)."""
    text = mac.replace(":", "")
    return f"{text[:4]}:{text[4:6]}03:00{text[6:8]}:{text[8:]}"


def shape_names() -> list[str]:
    return sorted(path.stem for path in SHAPES.glob("*.yml"))


def load_shape(name: str) -> dict[str, Any]:
    """The data of one node class; a class without a shape is an error that lists those there are."""
    import yaml  # here: the daemon imports this file and has no use for YAML

    path = SHAPES / f"{name}.yml"
    if not path.is_file():
        raise SpecError(f"no hardware shape for class {name!r}; there are: {', '.join(shape_names())}")
    shape: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return shape


def _check_keys(where: str, data: dict[str, Any], kind: type[FunctionSpec]) -> None:
    names = {one.name for one in fields(kind)}
    must = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    wrong = (set(data) - names) | (must - set(data))
    if wrong:
        raise SpecError(f"{where}: missing or unknown keys: {', '.join(sorted(wrong))}")


def _gpu(shape: dict[str, Any], number: int) -> GpuSpec:
    own = shape["gpus"][number]
    data = {**shape["gpu"], **own, "gpu": number, "local_cpulist": shape["numa_cpulist"][own["numa_node"]]}
    where = f"shape {shape['class']}, GPU {number}"
    _check_keys(where, data, GpuSpec)
    if not PCI.fullmatch(data["pci"]):
        raise SpecError(f"{where}: {data['pci']!r} is not a PCI address like 0008:01:00.0")
    return GpuSpec(**data)


def _rail(shape: dict[str, Any], host_index: int, number: int) -> RailSpec:
    own = shape["rails"][number]
    mac = mac_address(shape["mac_prefix"], host_index, number)
    data = {
        **shape["nic"],
        **own,
        "rail": number,
        "local_cpulist": shape["numa_cpulist"][own["numa_node"]],
        "mac": mac,
        "node_guid": node_guid(mac),
    }
    _check_keys(f"shape {shape['class']}, rail {number}", data, RailSpec)
    rail = RailSpec(**data)
    if len(rail.netdev) > IFNAMSIZ_USABLE or rail.netdev != udev_name(rail.pci):
        raise SpecError(f"shape {shape['class']}, rail {number}: netdev {rail.netdev} should be {udev_name(rail.pci)}")
    return rail


def node_spec(class_name: str, host_name: str, host_index: int) -> NodeSpec:
    """Hardware of one host; ``host_index`` must be unique in the fleet, it makes the MACs differ."""
    shape = load_shape(class_name)
    rails = tuple(_rail(shape, host_index, number) for number in range(len(shape["rails"])))
    if not isinstance(shape.get("bmc_powered"), bool):
        raise SpecError(f"shape {class_name}: bmc_powered: got {shape.get('bmc_powered')!r}, wanted true or false")
    gpus = tuple(_gpu(shape, number) for number in range(len(shape.get("gpus", ()))))
    return NodeSpec(class_name, host_name, host_index, rails, shape["bmc_powered"], gpus)
