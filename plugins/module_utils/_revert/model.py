# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A change that may cut the connection it was asked for through: what undoes it on the host, and when."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

FOLDER = "/run/aidc/revert"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
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

    @property
    def unit(self) -> str:
        return f"aidc-revert-{self.id}"

    def public(self) -> dict[str, t.Any]:
        """Without the saved texts, which may hold secrets of a network manager."""
        return {"id": self.id, "module": self.module, "state": self.state, "seconds": self.seconds, "timer": self.timer,
                "armed_at": self.armed_at, "undone_at": self.undone_at or None, "problems": list(self.problems)}

    def told(self) -> str:
        """For the operator."""
        bad = f"; not all could be restored: {'; '.join(self.problems)}" if self.problems else ""
        return (f"the change was undone on the host at {self.undone_at} because the controller did not come back "
                f"within {self.seconds:g} s{bad}")
