# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The NVIDIA driver of a node: what a call wants, what is installed, which one is loaded."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._gpu.model import Driver, Holder, Package, Pci, Setting, Unit
from .._gpu.tables import BoardKind, Flavour
from .._host.errors import Problem
from .._idle.model import Policy
from .._stack.model import Build, Os, kernel_order

Manager = t.Literal["apt", "dnf"]
Disruption = t.Literal["none", "driver"]
Action = t.Literal["warn", "refuse"]
MANAGERS: tuple[Manager, ...] = ("apt", "dnf")
ACTIONS: tuple[Action, ...] = ("warn", "refuse")

# Ours alone; module options and the ban of nouveau stand in one file, as one line of two files wins.
OPTIONS_FILE = "/etc/modprobe.d/aidc-nvidia.conf"
PIN_FILE = "/etc/apt/preferences.d/aidc-nvidia"
# Which packages this module has held, so that it changes no hold of somebody else.
HOLDS_FILE = "/etc/aidc/nvidia_driver_holds.json"
VERSIONLOCK_FILE = "/etc/dnf/plugins/versionlock.list"
DGX_FILE = "/etc/dgx-release"
HEADER = "# Written by aidc.gpu_cluster, module nvidia_driver. Changes here are lost.\n"
DWORDS = "RegistryDwords"

# States in which dpkg has begun and not ended a package [dpkg(1), PACKAGE STATES]; triggers run at the next call.
BROKEN = ("half-installed", "unpacked", "half-configured")


@dataclass(frozen=True)
class PackageSet:
    """A row of package_sets.yml. Names may hold {branch}, and those of ``by_kernel`` {kernel_flavour} too.

    ``pinned`` have the driver's version, by role: common, open, proprietary, and the kinds of boards.
    """

    id: str
    distributions: tuple[str, ...]
    releases: tuple[str, ...]
    architectures: tuple[str, ...]
    repository: str
    manager: Manager
    branch_from: int
    branch_below: int | None
    pinned: dict[str, tuple[str, ...]]
    unpinned: tuple[str, ...]
    by_kernel: tuple[str, ...]
    hold_with: tuple[str, ...]
    stream: dict[str, str]
    precompiled: bool
    source: str


@dataclass(frozen=True)
class KnownBad:
    """A row of known_bad.yml: where all that ``when`` names is so, ``what`` happens."""

    id: str
    when: dict[str, t.Any]
    action: Action
    what: str
    hint: str
    source: str


@dataclass(frozen=True)
class Request:
    version: str = ""
    flavour: Flavour = "open"
    board: BoardKind | None = None
    repository: str = "cuda"
    sets: tuple[PackageSet, ...] = ()
    known_bad: tuple[KnownBad, ...] = ()
    allow_known_bad: tuple[str, ...] = ()
    module_options: dict[str, str] = field(default_factory=dict)
    hold: bool = True
    replace_holds: bool = False
    reload: bool = True
    reload_in_domain: bool = False
    disruption_policy: Policy = "if_idle"
    manage: bool = True

    @property
    def branch(self) -> int:
        return int(self.version.split(".", maxsplit=1)[0])


@dataclass(frozen=True)
class KernelModule:
    """nvidia.ko as the file of one kernel; ``version`` None: there is none."""

    version: str | None = None
    flavour: Flavour | None = None


@dataclass(frozen=True)
class File:
    """A file of ours: what it holds, and when it was written. ``text`` None: not there."""

    text: str | None = None
    changed_at: float = 0.0


@dataclass(frozen=True)
class Node:
    """All that one read gives. ``problems``: what could not be read although it should be readable."""

    os: Os = field(default_factory=Os)
    architecture: str = ""
    page_size_bytes: int | None = None
    is_dgx: bool = False
    kernel: str = ""
    kernels: tuple[str, ...] = ()
    gpus: tuple[Pci, ...] = ()
    driver: Driver = Driver()
    driven: int | None = None
    # Loaded modules that hold nvidia, themselves or through others.
    users: tuple[str, ...] = ()
    # Those named like NVIDIA's, and the other ones of the set.
    packages: tuple[Package, ...] = ()
    # By name, the first one is what the package manager prefers; asked only where something is missing.
    available: dict[str, tuple[str, ...]] = field(default_factory=dict)
    modules: dict[str, KernelModule] = field(default_factory=dict)
    builds: tuple[Build, ...] = ()
    settings: tuple[Setting, ...] = ()
    in_force: dict[str, str] | None = None
    options_file: File = File()
    pin_file: File = File()
    holds_file: File = File()
    our_holds: frozenset[str] = frozenset()
    # Initramfs by kernel, with the time when it was built.
    images: dict[str, float] = field(default_factory=dict)
    units: tuple[Unit, ...] | None = None
    enabled_stream: str | None = None
    secure_boot: bool | None = None
    key_enrolled: bool | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def next_kernel(self) -> str:
        return max(self.kernels, key=kernel_order) if self.kernels else self.kernel

    @property
    def both_kernels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for one in (self.kernel, self.next_kernel) if one))

    @property
    def newer_kernel(self) -> str | None:
        following = self.next_kernel
        return following if kernel_order(following) > kernel_order(self.kernel) else None

    def on_disk(self, kernel: str | None = None) -> KernelModule:
        return self.modules.get(kernel or self.kernel, KernelModule())

    def package(self, name: str) -> Package | None:
        return next((one for one in self.packages if one.name == name), None)


@dataclass(frozen=True)
class Use:
    """Who would be disturbed: holders of a device file, steps of Slurm without one, processes that are unseen."""

    holders: tuple[Holder, ...] = ()
    steps: tuple[str, ...] = ()
    unseen: int = 0


@dataclass(frozen=True)
class Step:
    """``text`` and ``mode``: what a ("write", path) writes."""

    command: tuple[str, ...]
    why: str
    disruptive: Disruption = "none"
    text: str | None = None
    mode: int = 0o644

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": self.disruptive, "why": self.why}
