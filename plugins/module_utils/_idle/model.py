# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Who uses the RDMA devices of a node, and what a step that disturbs one must be told."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

Policy = t.Literal["if_idle", "force", "never"]
POLICIES: tuple[Policy, ...] = ("if_idle", "force", "never")

# They keep device files open without using them for a job, and a moment without the link or a new GID does them no
# harm. Names as the kernel cuts them, at 15 characters [driver-slurm-k8s.md 1.6 and 6: services that hold
# /dev/nvidia*; linux-rdma/rdma-core ibacm: opens every RDMA device].
SERVICES = frozenset(name[:15] for name in (
    "nvidia-persistenced", "nvidia-imex", "nv-fabricmanager", "nvlsm", "nv-hostengine", "dcgm-exporter", "nvidia-gridd",
    "nvidia-topologyd", "nvidia-device-plugin", "node_exporter", "slurmd", "kubelet", "gpud", "ibacm",
))


@dataclass(frozen=True)
class Process:
    """``job`` in words, "" for a process of no job; ``devices`` are the RDMA devices that it has open."""

    pid: int
    comm: str
    job: str = ""
    is_step: bool = False
    devices: tuple[str, ...] = ()
    has_gpu: bool = False

    def text(self) -> str:
        return f"{self.job} (pid {self.pid} {self.comm})" if self.job else f"pid {self.pid} {self.comm}"


@dataclass(frozen=True)
class QueuePair:
    """A reliable connection. The kernel's own users have no pid."""

    device: str
    comm: str
    pid: int | None = None


@dataclass(frozen=True)
class Mount:
    """A file system or disk that is reached over RDMA; ``netdev`` None: by which port is not known."""

    what: str
    netdev: str | None = None


@dataclass(frozen=True)
class Holder:
    """``device`` and ``netdev`` None: it uses the whole node."""

    who: str
    does: str
    device: str | None = None
    netdev: str | None = None

    def text(self) -> str:
        return f"{self.who} {self.does}"


@dataclass(frozen=True)
class Usage:
    """One reading. ``queue_pairs`` None: no tool could tell; ``unseen`` counts processes that could not be looked at.

    ``devices`` are the RDMA devices behind each PCI function, those of its virtual functions included.
    """

    processes: tuple[Process, ...] = ()
    queue_pairs: tuple[QueuePair, ...] | None = None
    mounts: tuple[Mount, ...] = ()
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unseen: int = 0

    @property
    def known(self) -> bool:
        return self.queue_pairs is not None and not self.unseen


@dataclass(frozen=True)
class Port:
    """What a disruptive step would disturb. ``devices`` beside those of the function, such as that of its bond."""

    pci: str
    netdev: str | None = None
    rail: int | None = None
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Which ports must be left alone, by PCI address, and why. ``known`` None: nobody was asked."""

    busy: dict[str, tuple[str, ...]] = field(default_factory=dict)
    known: bool | None = None
