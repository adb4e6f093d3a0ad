# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The RDMA software of a node: what a call wants, what is installed, which driver is loaded."""
from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass, field

from .._host.errors import Problem
from .._idle.model import Holder, Policy

Flavour = t.Literal["inbox", "doca_ofed", "unmanaged"]
Kind = t.Literal["inbox", "ofed"]
Role = t.Literal["stack", "blocker", "other"]
FLAVOURS = ("inbox", "doca_ofed", "unmanaged")
# Packages for every distribution that is not named.
ANY = "any"
DRIVER = "mlx5_core"
# The driver that each flavour means; an unmanaged node has the one that it has.
WANTED: dict[Flavour, Kind | None] = {"inbox": "inbox", "doca_ofed": "ofed", "unmanaged": None}
# Both hold what openibd unloads: most modules ib_core, some (mlx5_vdpa, mlx5_fwctl) only the driver.
HELD = ("ib_core", DRIVER)
OPENIBD = "/etc/init.d/openibd"
# Where the keys of DKMS are [dkms(8), mok_certificate; Ubuntu's own: driver-slurm-k8s.md 1.6].
MOK_CERTIFICATES = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")

# What `openibd stop` unloads itself [Mellanox mlnx-ofa_kernel ofed_scripts/openibd, UNLOAD_MODULES], as far as kernels
# of today have it, and the two modules below all others of OFED.
STACK_MODULES = frozenset((
    "mlx5_ib", "mlx5_core", "mlx4_ib", "mlxfw", "ib_ipoib", "ib_srp", "rds_rdma", "rdma_ucm", "rdma_cm", "iw_cm",
    "ib_cm", "ib_uverbs", "ib_umad", "ib_mad", "ib_core", "rdma_rxe", "mlx_compat", "mlxdevm",
))
# Known to keep the driver from being unloaded [host-setup.md 2.3: reports of doca-driver-build, drbd, nv_peer_memory].
BLOCKERS = frozenset((
    "nvidia_peermem", "rpcrdma", "nvme_rdma", "nvmet_rdma", "ib_isert", "ib_srpt", "ib_iser", "ko2iblnd",
    "drbd_transport_rdma", "mlx5_vdpa", "mlx5_fwctl",
))
_PARTS = re.compile(r"\d+|[a-z]+", re.IGNORECASE)


def kernel_order(release: str) -> list[tuple[int, int, str]]:
    """Sort key of a kernel's release, as rpm compares: a number is newer than a word (427.13.1.el9 than 427.el9)."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in _PARTS.findall(release)]


@dataclass(frozen=True)
class Request:
    """``packages``: names by family of the distribution. ``restart``: load the installed driver where it is not."""

    flavour: Flavour = "inbox"
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    doca_profile: str = "doca-ofed"
    doca_version: str | None = None
    doca_for_next_kernel: bool = False
    restart: bool = False
    disruption_policy: Policy = "if_idle"


@dataclass(frozen=True)
class Os:
    """``family`` is Debian, RedHat or the distribution's own id."""

    id: str = ""
    version: str = ""
    codename: str = ""
    family: str = ""


@dataclass(frozen=True)
class Module:
    """mlx5_core, loaded or as the file of one kernel; ``kind`` None: there is none."""

    kind: Kind | None = None
    version: str | None = None
    srcversion: str | None = None
    filename: str | None = None

    def text(self) -> str:
        words = {"inbox": "the kernel's own driver", "ofed": "that of DOCA-OFED", None: "no driver"}[self.kind]
        return f"{words} ({self.version})" if self.kind and self.version else words


@dataclass(frozen=True)
class Build:
    """A line of ``dkms status``; without ``kernel`` it is only registered."""

    name: str
    version: str
    kernel: str | None
    state: str
    note: str = ""


@dataclass(frozen=True)
class Dependant:
    """A loaded module that uses ib_core or the driver, itself or through others."""

    name: str
    uses: tuple[str, ...]

    @property
    def role(self) -> Role:
        return "blocker" if self.name in BLOCKERS else "stack" if self.name in STACK_MODULES else "other"

    def as_dict(self) -> dict[str, t.Any]:
        return {"name": self.name, "uses": list(self.uses), "role": self.role}


@dataclass(frozen=True)
class Function:
    """A physical PCI function of an mlx5 device; ``vfs`` counts its virtual ones."""

    pci: str
    driver: str | None = None
    netdevs: tuple[str, ...] = ()
    rdma_devices: tuple[str, ...] = ()
    vfs: int = 0


@dataclass(frozen=True)
class Node:
    """All that one read gives. ``problems``: what could not be read although it should be readable."""

    os: Os = field(default_factory=Os)
    kernel: str = ""
    kernels: tuple[str, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    missing_programs: tuple[str, ...] = ()
    loaded: Module = field(default_factory=Module)
    # By kernel, for the running one and the next.
    installed: dict[str, Module] = field(default_factory=dict)
    package: str | None = None
    builds: tuple[Build, ...] = ()
    dependants: tuple[Dependant, ...] = ()
    functions: tuple[Function, ...] = ()
    # None: not told, as on machines without UEFI.
    secure_boot: bool | None = None
    key_enrolled: bool | None = None
    has_openibd: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def next_kernel(self) -> str:
        """The newest one: what a boot loader takes that nobody has told otherwise."""
        return max(self.kernels, key=kernel_order) if self.kernels else self.kernel

    @property
    def newer_kernel(self) -> str | None:
        """The next kernel if it is newer than the running one."""
        following = self.next_kernel
        return following if kernel_order(following) > kernel_order(self.kernel) else None

    def on_disk(self, kernel: str | None = None) -> Module:
        return self.installed.get(kernel or self.kernel, Module())


@dataclass(frozen=True)
class Impact:
    """Who would be disturbed: uses of netdevs by name, holders of RDMA devices; whether all of them can be seen."""

    uses: dict[str, str] = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()
    users_known: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Step:
    command: tuple[str, ...]
    why: str
    disruptive: t.Literal["none", "driver"] = "driver"

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": self.disruptive, "why": self.why}


def plain(module: Module) -> dict[str, t.Any]:
    return asdict(module)
