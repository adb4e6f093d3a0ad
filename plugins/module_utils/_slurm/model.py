# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A cluster as it is rendered: its nodes, partitions, topology and settings, and what is wrong with them."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .versions import Version

Severity = t.Literal["error", "warning", "note"]
Topology = t.Literal["block", "tree", "flat"]
TOPOLOGIES = ("auto", "block", "tree", "flat")
CGROUPS = ("auto", "v2", "v1", "disabled")
OWNERSHIPS = ("whole", "include")
# As `uname -m` says, and as packages and container images call it.
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}
CONFIG_DIR, STATE_DIR = "/etc/slurm", "/var/lib/slurm/slurmctld"
SECRET_FILE = "slurmdbd-secret.conf"
HEADER = "# Written by aidc.gpu_cluster (playbooks/slurm.yml), which rewrites it: do not edit."


@dataclass(frozen=True)
class Finding:
    """``error`` refuses the files, before anything is replaced."""

    severity: Severity
    object: str
    got: str
    wanted: str
    hint: str = ""
    # An error for want of something that only the hosts can say.
    is_unknown: bool = False

    def as_dict(self) -> dict[str, str]:
        return {"severity": self.severity, "object": self.object, "got": self.got, "wanted": self.wanted,
                "hint": self.hint}

    def text(self) -> str:
        end = f" ({self.hint})" if self.hint else ""
        return f"{self.object}: got {self.got}, wanted {self.wanted}{end}"


@dataclass(frozen=True)
class Node:
    """``memory_mib`` is RealMemory; ``gpu_files`` and ``cores`` (or it is empty) an entry for each GPU."""

    name: str
    node_class: str
    architecture: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mib: int
    gpus: int = 0
    gres_type: str = ""
    gpu_files: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    domain: str = ""
    leaf: str = ""
    address: str = ""
    # node_class_nvlink_domain_trays: members of a domain that is complete.
    domain_size: int = 0

    @property
    def cpus(self) -> int:
        return self.sockets * self.cores_per_socket * self.threads_per_core

    @property
    def features(self) -> tuple[str, ...]:
        words = (self.node_class, ARCHITECTURES.get(self.architecture, self.architecture), self.domain)
        return tuple(dict.fromkeys(word for word in words if word))


@dataclass(frozen=True)
class Partition:
    """``nodes`` are names in the order of the inventory."""

    name: str
    nodes: tuple[str, ...]
    default: bool = False
    max_time: str = "INFINITE"
    options: t.Mapping[str, str] = field(default_factory=dict)
    # Groups that it was made of, for messages.
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Host:
    """A host that is named for its service; ``address`` is empty where its name resolves."""

    name: str
    address: str = ""


@dataclass(frozen=True)
class Settings:
    """What is the same for all nodes."""

    cgroup: str = "auto"
    mem_spec_limit_mib: int = 0
    health_program: str = ""
    health_interval_seconds: int = 300
    prolog: str = ""
    epilog: str = ""
    reboot_program: str = ""
    options: t.Mapping[str, str] = field(default_factory=dict)
    config_dir: str = CONFIG_DIR
    state_dir: str = STATE_DIR
    user: str = "slurm"
    database_host: str = "localhost"
    database_user: str = "slurm"
    database_name: str = "slurm_acct_db"


@dataclass(frozen=True)
class Cluster:
    name: str
    version: Version
    controllers: tuple[Host, ...]
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    dbd: Host | None = None
    topology: str = "auto"
    block_size: int = 0
    ownership: str = "whole"
    settings: Settings = Settings()

    @property
    def has_domains(self) -> bool:
        return any(node.domain for node in self.nodes)

    @property
    def has_gpus(self) -> bool:
        return any(node.gpus for node in self.nodes)
