# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A node class as its file has it, and a host as host_info and mlx5_info saw it. Pure and total."""
from __future__ import annotations

import ipaddress
import re
import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from .._hostinfo.tables import nic_kind

UNKNOWN = "unknown"
_PREFIX = "node_class_"
# name -> (type, default); 0 and [] mean that the class does not say.
_KEYS: dict[str, tuple[type, t.Any]] = {
    "architecture": (str, ""), "gpu_count": (int, 0), "gpu_pci_ids": (list, []), "nvlink_domain_trays": (int, 0),
    "nic_pci_ids": (list, []), "rail_count": (int, 0), "rail_speed_gbps": (int, 0), "rail_link_layer": (str, ""),
    "rail_pcie_speed_gts": (float, 0.0), "rail_pcie_width": (int, 0), "cpu_cores": (int, 0),
}
_WORDS = {str: "a text", int: "a whole number", float: "a number", list: "a list"}
_GROUP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ClassError(Exception):
    """A class file is not one; the message names file and key."""


@dataclass(frozen=True)
class NodeClass:
    name: str
    architecture: str = ""
    gpu_count: int = 0
    gpu_pci_ids: tuple[str, ...] = ()
    nvlink_domain_trays: int = 0
    nic_pci_ids: tuple[str, ...] = ()
    rail_count: int = 0
    rail_speed_gbps: int = 0
    rail_link_layer: str = ""
    rail_pcie_speed_gts: float = 0.0
    rail_pcie_width: int = 0
    cpu_cores: int = 0
    # The file as it stands and its variables.
    text: str = ""
    variables: t.Mapping[str, t.Any] = field(default_factory=dict)


def _value(where: str, key: str, data: t.Mapping[str, t.Any]) -> t.Any:
    kind, default = _KEYS[key]
    value = data.get(_PREFIX + key, default)
    good = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
    if good and kind is list:
        good = all(isinstance(item, str) for item in value)
    if not good:
        raise ClassError(f"{where}: {_PREFIX}{key}: got {value!r}, wanted {_WORDS[kind]}")
    return tuple(value) if kind is list else value


def node_class(where: str, data: t.Any, text: str = "") -> NodeClass:
    if not isinstance(data, t.Mapping):
        raise ClassError(f"{where}: got {type(data).__name__}, wanted variables of a node class")
    name = data.get(f"{_PREFIX}name")
    if not isinstance(name, str) or not _GROUP_NAME.fullmatch(name) or name == UNKNOWN:
        raise ClassError(f"{where}: {_PREFIX}name: got {name!r}, wanted the name of a group")
    return NodeClass(name, text=text, variables=data, **{key: _value(where, key, data) for key in _KEYS})


def pci_order(pci: str) -> tuple[int, ...]:
    """Rails are numbered in this order: domain, bus, device, function."""
    return tuple(int(part, 16) for part in re.split(r"[:.]", pci))


@dataclass(frozen=True)
class Port:
    """A network function. ``address`` is the first IPv4 address of its netdev, ADDRESS/LENGTH."""

    pci: str
    pci_id: str
    is_vf: bool = False
    netdev: str | None = None
    state: str | None = None
    speed_gbps: float | None = None
    link_layer: str | None = None
    excluded: str | None = None
    pcie_speed_gts: float | None = None
    pcie_width: int | None = None
    address: str | None = None
    owner: str | None = None
    neighbour: str | None = None

    @property
    def is_rail_hardware(self) -> bool:
        """A BlueField is never a rail, nor is a virtual function."""
        return nic_kind(self.pci_id, self.is_vf) not in ("bluefield", "virtual", "flash_recovery")

    @property
    def subnet(self) -> str | None:
        return str(ipaddress.ip_interface(self.address).network) if self.address else None

    @property
    def number(self) -> int | None:
        """The host's number in its subnet; in a pair of addresses there is none."""
        if not self.address:
            return None
        there = ipaddress.ip_interface(self.address)
        few = there.network.max_prefixlen - there.network.prefixlen < 2
        return None if few else int(there.ip) - int(there.network.network_address)


@dataclass(frozen=True)
class Host:
    """``error``: why there is nothing else."""

    name: str
    error: str | None = None
    architecture: str | None = None
    cores: int | None = None
    # (PCI address, id, name) of each GPU.
    gpus: tuple[tuple[str, str, str | None], ...] = ()
    ports: tuple[Port, ...] = ()
    nvlink_domain: str | None = None
    system: str = ""
    product: str | None = None
    stack: str = ""
    findings: tuple[Problem, ...] = ()
    needs_root: tuple[str, ...] = ()
