# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a call wants of the GIDs of a node's rails, and what it finds."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from .._mlx5.model import Device

Family = t.Literal["ipv4", "ipv6"]
Version = t.Literal["v1", "v2"]
# The two texts that the kernel knows, in a GID's type and in default_roce_mode [Linux
# Documentation/ABI/stable/sysfs-class-infiniband, Documentation/ABI/testing/configfs-rdma_cm].
ROCE_TYPES: dict[str, str] = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}


@dataclass(frozen=True)
class Want:
    """A rail, and the subnets of which one holds its address; without any, every routable address counts."""

    pci: str
    subnets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    ports: tuple[Want, ...]
    family: Family = "ipv4"
    version: Version = "v2"
    # RDMA-CM's default; None leaves it alone.
    roce_mode: Version | None = None
    wait_seconds: float = 5.0
    # A port without its GID: an error, or (False) a null in the result.
    must_have: bool = True


@dataclass(frozen=True)
class Mode:
    """RDMA-CM's default RoCE mode of a port: ``v1``, ``v2``, or None with the reason."""

    value: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Node:
    """``modes`` by PCI address; ``door`` is how they are set: configfs, cma_roce_mode, or "" for no way."""

    devices: tuple[Device, ...] = ()
    modes: dict[str, Mode] = field(default_factory=dict)
    door: str = ""
    problems: tuple[Problem, ...] = ()

    def device(self, pci: str) -> Device | None:
        return next((device for device in self.devices if device.pci == pci), None)
