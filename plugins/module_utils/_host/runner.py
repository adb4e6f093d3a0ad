# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Run a tool of the host: argv only, one locale, a deadline that holds.

``AnsibleModule.run_command`` has no time limit and waits for the end of the output, which a
grandchild that inherited the pipe can keep open for ever; hence ``subprocess`` here, and only here.
"""
from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
import typing as t
from dataclasses import dataclass

from .errors import Problem

STDOUT_LIMIT_BYTES = 4 * 1024 * 1024
STDERR_LIMIT_BYTES = 64 * 1024
TERM_GRACE_SECONDS = 1.0
REAP_SECONDS = 2.0
POLL_SECONDS = 0.05
# Under sudo and in cron the system's own tools are often not on the path.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

State = t.Literal["ok", "missing", "timeout", "failed"]
T = t.TypeVar("T")


@dataclass(frozen=True)
class Result:
    """What came of one tool call. ``rc`` is None where the tool did not run to its end."""

    argv: tuple[str, ...]
    state: State
    rc: int | None = None
    stdout: str = ""
    stderr: str = ""

    def why(self) -> str:
        """What went wrong, in a few words."""
        if self.state == "missing":
            return "the program is not installed"
        if self.state == "timeout" or not self.rc:
            return self.stderr
        said = self.said()
        return f"exit status {self.rc}" + (f": {said}" if said else "")

    def said(self) -> str:
        """The beginning of what it printed, errors first, on one line."""
        return " ".join((self.stderr or self.stdout).split())[:200]

    def unreadable(self, error: ValueError) -> str:
        """Words for output that a parser refused."""
        return f"output that cannot be read ({error}): {self.said() or 'nothing'}"

    def parsed(self, parser: t.Callable[[str], T], bad: list[Problem], wanted: str, hint: str) -> T | None:
        """The parsed answer of a tool that ended as it should; else None, and why in ``bad``."""
        try:
            if self.state == "ok":
                return parser(self.stdout)
            got = self.why()
        except ValueError as error:
            got = self.unreadable(error)
        bad.append(Problem(" ".join(self.argv), got, wanted, hint))
        return None


class Runner(t.Protocol):
    """The signature that tests replace."""

    def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result: ...


class _Sink:
    """Keeps the first bytes of a stream and drops the rest, so that the writer never blocks."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()
        self.cut = False

    def add(self, chunk: bytes) -> None:
        room = self.limit - len(self.data)
        self.data += chunk[:room]
        self.cut = self.cut or len(chunk) > room

    def text(self) -> str:
        return self.data.decode("utf-8", errors="replace")


class _Streams:
    """Both output pipes of a process, read without ever blocking."""

    def __init__(self, process: subprocess.Popen[bytes], stdout_limit: int) -> None:
        self.out, self.err = _Sink(stdout_limit), _Sink(STDERR_LIMIT_BYTES)
        self.selector = selectors.DefaultSelector()
        for pipe, sink in ((process.stdout, self.out), (process.stderr, self.err)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_READ, sink)

    def read(self, seconds: float) -> bool:
        """Take what comes within the time; True if anything came."""
        if not self.selector.get_map():
            time.sleep(seconds)
            return False
        got = False
        for key, _events in self.selector.select(seconds):
            chunk = os.read(key.fd, 65536)
            if chunk:
                key.data.add(chunk)
                got = True
            else:
                self.selector.unregister(key.fileobj)
        return got

    def close(self) -> None:
        self.selector.close()


def _has_ended(pid: int) -> bool:
    """Whether the process ended, leaving it unreaped: a zombie keeps its number, so the group can be signalled."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(pid: int, number: int) -> None:
    # Nobody may be left in the group, or only processes of another user (a set-uid tool).
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _read_until(pid: int, streams: _Streams, deadline: float) -> bool:
    """Read until the process ends (True) or the deadline has passed (False)."""
    while not _has_ended(pid):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        streams.read(min(left, POLL_SECONDS))
    return True


def _end_group(pid: int, streams: _Streams) -> None:
    """TERM, a moment to obey, then KILL for whoever is still there, grandchildren included."""
    _signal_group(pid, signal.SIGTERM)
    _read_until(pid, streams, time.monotonic() + TERM_GRACE_SECONDS)
    _signal_group(pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    path = os.environ.get("PATH")
    # Tools in Python (netplan) would leave compiled files behind: a question must leave no trace.
    fixed = {"LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **fixed, "PATH": f"{path}:{SYSTEM_PATH}" if path else SYSTEM_PATH}


def _drain(streams: _Streams, limit: int) -> None:
    """Take what an ended process left in its pipes; bounded, as a grandchild may go on writing."""
    for _round in range(2 * limit // 65536 + 2):
        if not streams.read(0):
            return


def _finish(process: subprocess.Popen[bytes], ended: bool, streams: _Streams, timeout_seconds: float) -> Result:
    argv = tuple(t.cast("t.Sequence[str]", process.args))
    out, err = streams.out.text(), streams.err.text()
    if not ended:
        return Result(argv, "timeout", None, out, f"no answer within {timeout_seconds:g} s; ended by us")
    if streams.out.cut:
        return Result(argv, "failed", process.returncode, out, f"printed more than {streams.out.limit} bytes")
    return Result(argv, "ok" if process.returncode == 0 else "failed", process.returncode, out, err)


def run(argv: t.Sequence[str], timeout_seconds: float, stdout_limit_bytes: int = STDOUT_LIMIT_BYTES) -> Result:
    """Run ``argv`` and return what came of it; never raises for what the tool does."""
    try:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=_environment(), start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError):
        return Result(tuple(argv), "missing")
    except OSError as error:
        return Result(tuple(argv), "failed", None, "", f"cannot be started: {error.strerror}")
    streams = _Streams(process, stdout_limit_bytes)
    ended = False
    try:
        ended = _read_until(process.pid, streams, time.monotonic() + timeout_seconds)
        if ended:
            _drain(streams, stdout_limit_bytes)
    finally:
        if not ended:
            _end_group(process.pid, streams)
        _reap(process)
        streams.close()
    return _finish(process, ended, streams, timeout_seconds)


def _reap(process: subprocess.Popen[bytes]) -> None:
    # A process stuck inside the kernel (uninterruptible) ignores every signal; we do not wait for it.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(REAP_SECONDS)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
