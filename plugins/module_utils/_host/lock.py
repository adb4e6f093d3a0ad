# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Locks, so that two operators do not mix their writes: one per host around everything that changes it, and others."""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from .errors import AidcError, Problem
from .machine import Machine

LOCK_FILE = "/run/lock/aidc.lock"
WAIT_SECONDS = 5.0
POLL_SECONDS = 0.25
# The boot tool, which a reload of the driver starts in the middle of a run, ends by itself: it is waited for.
BOOT_TOOL = "aidc-fabric"
BOOT_SECONDS = 120.0


def _user() -> str:
    """Who is behind this call: under sudo the one who called sudo."""
    if "SUDO_USER" in os.environ:
        return os.environ["SUDO_USER"]
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _patience(descriptor: int, wait_seconds: float) -> float:
    """How long this holder is waited for."""
    try:
        what = str(json.loads(os.pread(descriptor, 4096, 0))["what"])
    except (ValueError, KeyError, TypeError):
        return wait_seconds
    return max(wait_seconds, BOOT_SECONDS) if what.startswith(BOOT_TOOL) else wait_seconds


def _holder(descriptor: int) -> str:
    """The holder in words; the file may be blank between taking the lock and writing the name."""
    try:
        data = json.loads(os.pread(descriptor, 4096, 0))
        return f"pid {data['pid']} of {data['user']} ({data['what']}) since {data['since']}"
    except (ValueError, KeyError, TypeError):
        return "a holder that left no name"


def _open(path: Path, name: str) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # First without O_CREAT: in a sticky directory the kernel may refuse O_CREAT on another user's file.
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    except OSError as error:
        hint = "run as the owner of its folder; remove it if it is not a plain file of that user"
        raise AidcError([Problem(name, error.strerror or str(error), "a lock file", hint)]) from error
    owner = os.fstat(descriptor).st_uid
    if owner != os.geteuid():
        os.close(descriptor)
        raise AidcError([Problem(name, f"a file of uid {owner}", f"a file of uid {os.geteuid()}", "remove it")])
    return descriptor


def _take(descriptor: int, name: str, machine: Machine, wait_seconds: float) -> None:
    start = machine.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if machine.monotonic() - start >= _patience(descriptor, wait_seconds):
                problem = Problem(name, f"held by {_holder(descriptor)}", "a free lock",
                                  "wait for that run to end, then start again")
                raise AidcError([problem]) from None
        machine.sleep(POLL_SECONDS)


def host_lock(
    machine: Machine, what: str, wait_seconds: float = WAIT_SECONDS,
) -> contextlib.AbstractContextManager[None]:
    """Hold the host's lock; nothing more is to be done where our caller does."""
    if machine.locked:
        return contextlib.nullcontext()
    return file_lock(machine, machine.path(LOCK_FILE), LOCK_FILE, what, wait_seconds)


@contextlib.contextmanager
def file_lock(
    machine: Machine, path: Path, name: str, what: str, wait_seconds: float = WAIT_SECONDS,
) -> t.Iterator[None]:
    """Hold the lock file ``path``, called ``name``; the kernel frees it when this process ends, however it ends."""
    descriptor = _open(path, name)
    try:
        _take(descriptor, name, machine, wait_seconds)
        since = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        holder = {"pid": machine.pid, "user": _user(), "what": what, "since": since}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
