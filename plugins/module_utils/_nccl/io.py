# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Start a launcher, watch it, and leave nothing of it on this host.

Output goes straight into a file: a pipe could be kept open by whatever the launcher leaves behind, and a
run of an hour prints more than belongs into memory.
"""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from .._access import processes
from .._access.processes import Marked

TERM_GRACE_SECONDS = 8.0
KILL_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.1
KEPT_LOGS = 10
HEAD_BYTES = 24 * 1024
TAIL_BYTES = 72 * 1024


@dataclass
class Outcome:
    """How a run ended. ``exit_code`` is None where the launcher was not started or did not end by itself."""

    started: float = 0.0
    seconds: float = 0.0
    exit_code: int | None = None
    timed_out: bool = False
    too_much_output: bool = False
    not_started: str = ""
    killed: list[Marked] = field(default_factory=list)
    left: list[Marked] = field(default_factory=list)

    def evidence(self) -> dict[str, t.Any]:
        return {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(self.seconds, 2), "exit_code": self.exit_code, "timed_out": self.timed_out,
            "too_much_output": self.too_much_output, "not_started": self.not_started,
            "killed": [process.as_dict() for process in self.killed],
            "left": [process.as_dict() for process in self.left],
        }


@dataclass(frozen=True)
class Bounds:
    seconds: float
    log_bytes: int = 256 * 1024 * 1024
    grace_seconds: float = TERM_GRACE_SECONDS


class Interrupted(Exception):
    """This process was told to end; the run is ended first."""


def launch(argv: t.Sequence[str], environment: t.Mapping[str, str], mark: str, log: Path, bounds: Bounds,
           stop: threading.Event | None = None) -> Outcome:
    """Run it to its end or to a bound; then nothing that carries the mark is left on this host.

    ``stop``: of a caller that runs several in threads and looks after the signals itself (`ending_on_signal`).
    """
    outcome = Outcome(started=time.time())
    start = time.monotonic()
    try:
        with ending_on_signal(stop), open(log, "wb") as stream:
            process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                env=dict(environment), cwd=log.parent, start_new_session=True,
            )
            try:
                _watch(process, log, bounds, outcome, stop)
            finally:
                _end(process, bounds.grace_seconds)
    except OSError as error:
        outcome.not_started = f"{argv[0]}: {error.strerror}"
    finally:
        # What a good end leaves for a moment (ssh, a rank in its last steps) is no stray.
        ended = processes.end(lambda found: found == mark, settle_seconds=0.0 if outcome.exit_code is None else 1.0)
        outcome.killed, outcome.left = ended.killed, ended.left
        outcome.seconds = time.monotonic() - start
    return outcome


def _watch(process: subprocess.Popen[bytes], log: Path, bounds: Bounds, outcome: Outcome,
           stop: threading.Event | None) -> None:
    deadline = time.monotonic() + bounds.seconds
    while process.poll() is None:
        if stop is not None and stop.is_set():
            return
        if time.monotonic() >= deadline:
            outcome.timed_out = True
            return
        if log.stat().st_size > bounds.log_bytes:
            outcome.too_much_output = True
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)
    # A launcher that a signal ended gives -N; shells and the judge say 128 + N.
    code = process.returncode
    outcome.exit_code = code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """TERM lets the launcher take its ranks on all hosts with it; KILL is for one that does not obey."""
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, KILL_WAIT_SECONDS)):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


@contextlib.contextmanager
def ending_on_signal(stop: threading.Event | None = None) -> t.Iterator[None]:
    """TERM, INT and HUP raise `Interrupted`. With ``stop``, which another thread sets, nothing is done."""
    if stop is not None:
        yield
        return

    def interrupted(number: int, _frame: t.Any) -> None:
        raise Interrupted(signal.Signals(number).name)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, interrupted) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bounded_text(log: Path, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> str:
    """The log, or its two ends with a line in between that says how much is left out."""
    size = log.stat().st_size
    with open(log, "rb") as stream:
        if size <= head + tail:
            return stream.read(head + tail).decode("utf-8", errors="replace")
        first = stream.read(head)
        stream.seek(size - tail)
        last = stream.read(tail)
    middle = f"\n... {size - head - tail} bytes left out ...\n"
    return first.decode("utf-8", errors="replace") + middle + last.decode("utf-8", errors="replace")


def prune_logs(directory: Path, keep: int = KEPT_LOGS) -> None:
    """Only the newest logs stay."""
    logs = sorted(directory.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in logs[keep:]:
        path.unlink(missing_ok=True)
