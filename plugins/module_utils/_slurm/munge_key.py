# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The key of munge on a host: made once, or the one that is handed over. Nothing of it is ever in a result unasked."""
from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import pwd
import secrets
import stat
import typing as t
from dataclasses import asdict, dataclass

from .._host.errors import AidcError, Problem
from .._host.files import write_atomic
from .._host.lock import host_lock
from .._host.machine import Machine

MODE = 0o400
# munge(7) src/munged/conf.c: at least 32 bytes, and 1024 at most [dun/munge 0.5.15 and 0.5.16].
SHORTEST_BYTES, LONGEST_BYTES = 32, 1024
NEW_BYTES = 128


@dataclass(frozen=True)
class State:
    """What can be told of a key: none of its bits."""

    fingerprint: str | None
    mode: str | None
    owner: str | None


def fingerprint(key: bytes) -> str:
    return hashlib.sha256(b"aidc munge key\0" + key).hexdigest()[:16]


def decode(content: str) -> bytes:
    """The key of an option in base64."""
    try:
        key = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise AidcError([Problem("content", "text that is no base64", "the key in base64")]) from None
    if not SHORTEST_BYTES <= len(key) <= LONGEST_BYTES:
        raise AidcError([Problem("content", f"a key of {len(key)} bytes",
                                 f"{SHORTEST_BYTES} to {LONGEST_BYTES} bytes, as munged takes no other")])
    return key


def _read(machine: Machine, path: str) -> tuple[bytes | None, State]:
    try:
        with open(machine.path(path), "rb") as stream:
            key, status = stream.read(LONGEST_BYTES + 1), os.fstat(stream.fileno())
    except FileNotFoundError:
        return None, State(None, None, None)
    except OSError as error:
        raise AidcError([Problem(path, error.strerror or str(error), "a readable file", "run as root")]) from error
    with contextlib.suppress(KeyError):
        return key, State(fingerprint(key), f"{stat.S_IMODE(status.st_mode):04o}", pwd.getpwuid(status.st_uid).pw_name)
    return key, State(fingerprint(key), f"{stat.S_IMODE(status.st_mode):04o}", str(status.st_uid))


def _owner(name: str) -> tuple[int, int]:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise AidcError([Problem(f"user {name}", "no such user", "the user that munged runs as",
                                 "install the package munge")]) from None
    return entry.pw_uid, entry.pw_gid


def _daemon(machine: Machine, path: str, pid_file: str, writes: bool) -> str:
    """Whether munged runs with the key: it reads it at its start, when it writes its PID file."""
    try:
        started = machine.path(pid_file).stat().st_mtime_ns
        return "old" if writes or started < machine.path(path).stat().st_mtime_ns else "current"
    except OSError:
        return "absent"


def configure(machine: Machine, params: t.Mapping[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Put the key in place if it is not; the result has the key itself only with ``reveal``."""
    path, owner = params["path"], params["owner"]
    given = None if params["content"] is None else decode(params["content"])
    ids = _owner(owner)
    with contextlib.nullcontext() if check_mode else host_lock(machine, "munge_key"):
        have, before = _read(machine, path)
        usable = have is not None and SHORTEST_BYTES <= len(have) <= LONGEST_BYTES
        key = given or (have if have is not None and usable else secrets.token_bytes(NEW_BYTES))
        wanted = State(fingerprint(key), f"{MODE:04o}", owner)
        steps = [] if wanted == before else [["write", path]]
        if steps and not check_mode:
            _write(machine, path, key, ids)
            if _read(machine, path)[1] != wanted:
                raise AidcError([Problem(path, "another key, mode or owner", "what was written")], steps)
    result = {"changed": bool(steps), "before": asdict(before), "after": asdict(wanted), "commands": steps,
              "fingerprint": wanted.fingerprint,
              "daemon": _daemon(machine, path, params["pid_file"], bool(steps) and check_mode)}
    if params["reveal"]:
        result["content"] = base64.b64encode(key).decode("ascii")
    return result


def _write(machine: Machine, path: str, key: bytes, ids: tuple[int, int]) -> None:
    try:
        write_atomic(machine.path(path), key, MODE, 0o700)
        # After the replacement: killed in between, the next run finds the wrong owner and writes again.
        os.chown(machine.path(path), *ids)
    except OSError as error:
        raise AidcError([Problem(path, error.strerror or str(error), "the key in its place",
                                 "is the disk full?")]) from error
