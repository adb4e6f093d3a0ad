# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A change that may cut the connection it was asked for through: what undoes it on the host, and when."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

# On the disk: a node that does not answer is soon power cycled, and must come back as it was.
FOLDER = "/var/lib/aidc/revert"
UNITS = "/etc/systemd/system"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
FOLDER_MODE, FILE_MODE, UNIT_MODE = 0o700, 0o600, 0o644
# Below it no controller could be back in time.
MIN_SECONDS = 5
# A module writes it after its own files (PATH of _intent/model.py).
INTENT = "/etc/aidc/intent.json"
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

State = t.Literal["armed", "undoing", "undone"]


@dataclass(frozen=True)
class Undo:
    """What gives the old state back: ``files`` are the paths to save, then commands, then the links as they are now.

    A command is an argv list, or ("write", path, value) for a file of the kernel.
    """

    files: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    netdevs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """As it lies in FOLDER. ``deadline`` is of the monotonic clock, which all processes of a boot share."""

    id: str
    module: str
    digest: str
    seconds: float
    deadline: float
    state: State = "armed"
    lock: str = ""
    armed_at: str = ""
    undone_at: str = ""
    timer: str = ""
    files: tuple[dict[str, t.Any], ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    links: tuple[tuple[str, ...], ...] = ()
    problems: tuple[str, ...] = field(default=())
    # Of the boot in which it was armed; in another one it is undone at once.
    boot_id: str = ""
    rebooted: bool = False
    # Removed with it.
    unit_files: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        return f"aidc-revert-{self.id}"

    def public(self) -> dict[str, t.Any]:
        """Without the saved texts, which may hold secrets of a network manager."""
        return {"id": self.id, "module": self.module, "state": self.state, "seconds": self.seconds, "timer": self.timer,
                "armed_at": self.armed_at, "undone_at": self.undone_at or None,
                "reason": self.reason if self.undone_at else None, "problems": list(self.problems)}

    @property
    def reason(self) -> str:
        """Why the host undoes it by itself."""
        return "the host was rebooted before the controller had come back" if self.rebooted else \
            f"the controller did not come back within {self.seconds:g} s"

    def told(self) -> str:
        """For the operator."""
        bad = f"; not all could be restored: {'; '.join(self.problems)}" if self.problems else ""
        return f"the change was undone on the host at {self.undone_at} because {self.reason}{bad}"


def boot_unit(program: t.Sequence[str]) -> str:
    """For the next boot, before a network manager reads the files that the change has written."""
    return "\n".join((
        "# Written by aidc.gpu_cluster (armed revert); removed when the change is confirmed or undone.", "[Unit]",
        "Description=Undo a change of the network that nobody has confirmed", "DefaultDependencies=no",
        f"RequiresMountsFor={FOLDER} /etc /usr", "After=local-fs.target", "Wants=network-pre.target",
        "Before=network-pre.target systemd-networkd.service NetworkManager.service", "", "[Service]", "Type=oneshot",
        f"ExecStart={' '.join(program)}", "TimeoutStartSec=120", ""))
