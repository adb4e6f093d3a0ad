# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What a call of slurm_config wants of a host, what is there, and the steps between."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .versions import Version

Role = t.Literal["controller", "dbd", "compute", "login"]
State = t.Literal["installed", "active"]
Action = t.Literal["none", "reconfigure", "restart"]
# The stronger includes the weaker.
ACTIONS: tuple[Action, ...] = ("none", "reconfigure", "restart")
# Role to its daemon, which also says its version; and the package of both.
DAEMONS = {"controller": "slurmctld", "dbd": "slurmdbd", "compute": "slurmd", "login": ""}
PACKAGES = {"slurmctld": "slurmctld", "slurmd": "slurmd"}
# Stands from before the first file is replaced until the daemon has taken them over; /run is empty after a boot, which
# starts the daemons anyway.
# One for each role, as a host may have several.
PENDING_FILE = "/run/aidc/slurm-config-{role}.pending"
# On a controller: which files every slurmd has to be started with. It outlives a boot, as the nodes do.
RESTART_FILE = "/var/lib/aidc/slurm-compute-restart"
# Beside the files, so that they are moved and not copied.
OLD, NEW = "aidc-old", ".aidc-new"
OURS = "# Written by aidc.gpu_cluster"
FILE_MODE, SECRET_MODE = 0o644, 0o600


def stronger(one: Action, other: Action) -> Action:
    return max(one, other, key=ACTIONS.index)


@dataclass(frozen=True)
class Request:
    files: t.Mapping[str, str]
    absent: tuple[str, ...] = ()
    directory: str = "/etc/slurm"
    role: Role = "controller"
    state: State = "active"
    services: tuple[str, ...] = ()
    user: str = "slurm"
    take_over: bool = False
    start_seconds: float = 60.0

    @property
    def daemon(self) -> str:
        return DAEMONS[self.role]

    @property
    def pending_file(self) -> str:
        return PENDING_FILE.format(role=self.role)

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def kept(self, name: str) -> str:
        return f"{self.directory}/{OLD}/{self.role}/{name}"

    def mode(self, name: str) -> int:
        """slurmdbd refuses to start if others can read its file [3.3]."""
        return SECRET_MODE if name == "slurmdbd.conf" else FILE_MODE

    def owner(self, name: str) -> str:
        return self.user if name == "slurmdbd.conf" else "root"


@dataclass(frozen=True)
class Present:
    """A file as it is; ``owner`` is a name, or the number of one that has none."""

    text: str
    mode: int
    owner: str


@dataclass(frozen=True)
class Pending:
    """What a run before had begun. ``new`` names the files that were not there before it."""

    action: Action
    compute_action: Action = "none"
    why: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """``services`` has systemd's word for each: active, inactive, failed, not-found ...

    ``kept`` has the texts that a run before has replaced, while the daemons have not taken the new ones over.
    ``restart_id`` is of the last change that every slurmd has to be started again for; only a controller has it.
    """

    version: Version | None
    files: t.Mapping[str, Present] = field(default_factory=dict)
    services: t.Mapping[str, str] = field(default_factory=dict)
    pending: Pending | None = None
    kept: t.Mapping[str, str] = field(default_factory=dict)
    restart_id: str = ""
    users: t.Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """("keep" | "write" | "remove", path), or an argv list."""

    command: tuple[str, ...]
    why: str
    disruptive: str = "none"

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": self.disruptive, "why": self.why}


@dataclass(frozen=True)
class Plan:
    """``action`` is the daemon's, ``compute_action`` what the slurmd of all nodes need, ``restart_id`` see Node."""

    steps: tuple[Step, ...] = ()
    action: Action = "none"
    compute_action: Action = "none"
    why: tuple[str, ...] = ()
    restart_id: str = ""
