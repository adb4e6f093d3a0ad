# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is known of a node's GPUs, and what its class wants of them. Pure."""
from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass, field

from .tables import BoardKind, Flavour

Family = t.Literal["margin", "absolute"]
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE)


def pci_address(text: str) -> str:
    """As sysfs writes it: ``00000008:01:00.0`` of nvidia-smi and ``0008:01:00`` of an Xid are ``0008:01:00.0``."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"no PCI address: {text.strip()[:40]!r}")
    domain, slot, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{slot.lower()}.{function or '0'}"


def version_parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def same_version(one: str, other: str) -> bool:
    """By number. Helpers and NVML print two parts for a driver of three [driver-slurm-k8s.md 1.4]."""
    first, second = version_parts(one), version_parts(other)
    if 2 in (len(first), len(second)):
        return first[:2] == second[:2]
    return first == second


@dataclass(frozen=True)
class Wanted:
    """What the class of the node says; None or empty: nothing."""

    gpu_count: int | None = None
    gpu_pci_ids: tuple[str, ...] = ()
    board: BoardKind | None = None
    flavour: Flavour | None = None
    driver_version: str | None = None
    module_parameters: dict[str, str] = field(default_factory=dict)
    persistence: bool | None = None
    mig: bool | None = None
    memory_total_mib: int | None = None


@dataclass(frozen=True)
class Pci:
    """A GPU as the PCI bus has it. ``path``: names of the bridges above it, the host bridge first."""

    pci: str
    pci_id: str
    numa_node: int | None = None
    driver: str | None = None
    answers: bool | None = None
    path: tuple[str, ...] = ()
    pcie: dict[str, t.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Nic:
    """A physical network function with an RDMA device."""

    pci: str
    rdma_device: str | None
    link_layer: str | None
    numa_node: int | None
    path: tuple[str, ...] = ()
    rail: int | None = None


@dataclass(frozen=True)
class Driven:
    """A GPU in /proc/driver/nvidia/gpus."""

    pci: str
    model: str | None = None
    uuid: str | None = None
    minor: int | None = None
    firmware_version: str | None = None
    excluded: bool | None = None


@dataclass(frozen=True)
class Fabric:
    """Part "Fabric" of one GPU; ``health`` as it stands there."""

    state: str | None = None
    status: str | None = None
    clique_id: int | None = None
    cluster_uuid: str | None = None
    health: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mode:
    """A setting that is one way now, and after the next reset perhaps another."""

    current: str | None = None
    pending: str | None = None


@dataclass(frozen=True)
class Temperature:
    """``margin_c``: degrees left to the highest operating temperature, whichever family of labels the board has."""

    family: Family | None = None
    current_c: int | None = None
    margin_c: int | None = None
    memory_c: int | None = None


@dataclass(frozen=True)
class Remap:
    """Remapped rows; on older boards ``pending`` is that of retired pages."""

    correctable: int | None = None
    uncorrectable: int | None = None
    pending: bool | None = None
    failure: bool | None = None


@dataclass(frozen=True)
class Smi:
    """One GPU in ``nvidia-smi -q``. None: not printed, or N/A."""

    pci: str
    name: str | None = None
    uuid: str | None = None
    persistence: bool | None = None
    memory_total_mib: int | None = None
    bar1_total_mib: int | None = None
    mig: Mode = Mode()
    ecc: Mode = Mode()
    ecc_errors: dict[str, int] = field(default_factory=dict)
    remap: Remap = Remap()
    temperature: Temperature = Temperature()
    events: tuple[str, ...] | None = None
    clocks_mhz: dict[str, int] = field(default_factory=dict)
    fabric: Fabric | None = None
    reset_required: bool | None = None
    recovery_action: str | None = None
    is_lost: bool = False

    def as_data(self) -> dict[str, t.Any]:
        data = asdict(self)
        data["events"] = None if self.events is None else list(self.events)
        return {key: value for key, value in data.items() if key not in ("pci", "name", "uuid")}

    @classmethod
    def no_data(cls) -> dict[str, None]:
        """The same of a GPU of which nvidia-smi said nothing."""
        return dict.fromkeys(cls("").as_data())


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    state: str = "installed"
    held: bool | None = None


@dataclass(frozen=True)
class Driver:
    """``loaded``, ``on_disk`` and ``userspace`` are the versions; None: not there, or not readable."""

    loaded: str | None = None
    flavour: Flavour | None = None
    is_loaded: bool = False
    on_disk: str | None = None
    on_disk_flavour: Flavour | None = None
    userspace: str | None = None
    packages: tuple[Package, ...] = ()
    references: int | None = None
    users: tuple[str, ...] = ()
    nouveau: bool = False
    # Options that the module on disk has.
    options: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Setting:
    """One ``options nvidia NVreg_NAME=VALUE``."""

    name: str
    value: str
    file: str


@dataclass(frozen=True)
class Event:
    """One Xid line. ``pci`` without the right function, which the line does not have: 0."""

    pci: str
    xid: int
    time: str | None
    text: str


@dataclass(frozen=True)
class Unit:
    name: str
    load: str
    active: str
    enabled: str


@dataclass(frozen=True)
class Holder:
    """A process with device files of the driver open."""

    pid: int
    comm: str
    job: str | None
    files: tuple[str, ...]
    is_service: bool
