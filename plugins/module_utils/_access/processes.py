# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Find and end the processes of runs, by the mark that each of them has in its environment.

A name would find other users' and other runs' processes; a process group would miss the ranks, each of
which the launcher puts into a group of its own.
"""
from __future__ import annotations

import contextlib
import os
import signal
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from .model import MARK_VARIABLE

PROC = Path("/proc")
TERM_GRACE_SECONDS = 2.0
KILL_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.05
_COMMAND_CHARS = 200


@dataclass(frozen=True)
class Marked:
    pid: int
    run_id: str
    command: str

    def as_dict(self) -> dict[str, t.Any]:
        return {"pid": self.pid, "run_id": self.run_id, "command": self.command}


@dataclass
class Ended:
    """``killed`` are gone; ``left`` are still there (stuck in the kernel)."""

    killed: list[Marked] = field(default_factory=list)
    left: list[Marked] = field(default_factory=list)


def start_of(pid: int, proc: Path = PROC) -> str | None:
    """Start time in clock ticks since boot (field 22 of stat); None for a process that is gone or a zombie."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if len(fields) < 20 or fields[0] in "ZX" else fields[19]


def _run_of(pid: str, proc: Path) -> str | None:
    """The run in the environment of that process, if it is our user's. A zombie has none."""
    prefix = MARK_VARIABLE.encode() + b"="
    try:
        if os.stat(proc / pid).st_uid != os.geteuid():
            return None
        data = (proc / pid / "environ").read_bytes()
    except OSError:
        return None
    for entry in data.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix):].decode("utf-8", errors="replace")
    return None


def _command(pid: str, proc: Path) -> str:
    try:
        data = (proc / pid / "cmdline").read_bytes()
    except OSError:
        return ""
    return data.replace(b"\0", b" ").decode("utf-8", errors="replace").strip()[:_COMMAND_CHARS]


def find(wanted: t.Callable[[str], bool], proc: Path = PROC) -> list[Marked]:
    """Our user's processes of the runs that ``wanted`` names; never this process itself."""
    own, found = str(os.getpid()), []
    for pid in os.listdir(proc):
        if not pid.isdigit() or pid == own:
            continue
        run_id = _run_of(pid, proc)
        if run_id is not None and wanted(run_id):
            found.append(Marked(int(pid), run_id, _command(pid, proc)))
    return found


def _signal(processes: t.Iterable[Marked], number: int) -> None:
    for process in processes:
        # The number may have been given to another process since: look again.
        if _run_of(str(process.pid), PROC) != process.run_id:
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def _wait(wanted: t.Callable[[str], bool], seconds: float) -> list[Marked]:
    """Until none is left or the time is over; what is left."""
    deadline = time.monotonic() + seconds
    while (left := find(wanted)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left


def end(wanted: t.Callable[[str], bool], grace_seconds: float = TERM_GRACE_SECONDS,
        settle_seconds: float = 0.0) -> Ended:
    """After ``settle_seconds`` TERM, a moment to obey, then KILL, also for what was started meanwhile."""
    seen = {process.pid: process for process in _wait(wanted, settle_seconds)}
    if not seen:
        return Ended()
    _signal(seen.values(), signal.SIGTERM)
    left = _wait(wanted, grace_seconds)
    deadline = time.monotonic() + KILL_WAIT_SECONDS
    while left and time.monotonic() < deadline:
        seen.update({process.pid: process for process in left})
        _signal(left, signal.SIGKILL)
        left = _wait(wanted, 4 * POLL_SECONDS)
    still = {process.pid for process in left}
    return Ended([process for pid, process in sorted(seen.items()) if pid not in still], left)
