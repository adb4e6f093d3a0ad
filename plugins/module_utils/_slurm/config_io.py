# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read and replace Slurm's files on a host, have the daemons take them over, and go back where they do not."""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import typing as t
from pathlib import Path

from .._host.errors import AidcError, Problem
from .._host.files import read_text, remove, write_atomic
from .._host.machine import Machine
from . import versions
from .config_model import ACTIONS, NEW, PACKAGES, RESTART_FILE, Node, Pending, Plan, Present, Request

_WORDS = ("active", "activating", "reloading", "inactive", "failed", "deactivating")


# -- read -------------------------------------------------------------------------------------------------


def _version(machine: Machine, request: Request) -> versions.Version | None:
    """Of the roles whose action depends on it. Other programs say it only when they have read their files."""
    program = request.daemon
    if request.role not in ("controller", "compute"):
        return None
    asked = machine.tool(program, "-V")
    try:
        if asked.state == "ok":
            return versions.parse(asked.stdout)
        why = asked.why()
    except versions.VersionError as error:
        why = str(error)
    raise AidcError([Problem(f"{program} -V", why, "the version of Slurm", f"the package {PACKAGES[program]} has it")])


def _users(machine: Machine) -> dict[str, tuple[int, int]]:
    found = {}
    for line in (read_text(machine.path("/etc/passwd")) or "").splitlines():
        parts = line.split(":")
        if len(parts) > 3 and parts[2].isdigit() and parts[3].isdigit():
            found[parts[0]] = (int(parts[2]), int(parts[3]))
    return found


def _present(machine: Machine, path: str, users: t.Mapping[str, tuple[int, int]]) -> Present | None:
    real = machine.path(path)
    try:
        status, text = real.stat(), real.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise AidcError([Problem(path, error.strerror or str(error), "a readable file", "run as root")]) from error
    owner = next((name for name, ids in users.items() if ids[0] == status.st_uid), str(status.st_uid))
    return Present(text, stat.S_IMODE(status.st_mode), owner)


def _service(machine: Machine, name: str) -> str:
    """ActiveState, or why there is none: not-found, masked."""
    asked = machine.tool("systemctl", "show", "--property=LoadState,ActiveState", f"{name}.service")
    if asked.state != "ok":
        raise AidcError([Problem(f"systemctl show {name}.service", asked.why(), "the state of a unit",
                                 "Slurm's daemons are systemd units here")])
    said = dict(line.split("=", 1) for line in asked.stdout.splitlines() if "=" in line)
    load, active = said.get("LoadState", ""), said.get("ActiveState", "")
    if load in ("not-found", "masked"):
        return load
    return active if active in _WORDS else "unknown"


def _pending(machine: Machine, request: Request) -> Pending | None:
    text = read_text(machine.path(request.pending_file))
    if text is None:
        return None
    try:
        data = json.loads(text)
        actions = [action for action in (data["action"], data["compute_action"]) if action in ACTIONS]
        return Pending(actions[0], actions[1], tuple(map(str, data["why"])), tuple(map(str, data["new"])))
    except (ValueError, KeyError, TypeError, IndexError):
        # Whatever it said, the daemons may not have read the files.
        return Pending("restart", "restart", ("a run before this one was ended",))


def _kept(machine: Machine, request: Request) -> dict[str, str]:
    texts = {name: read_text(machine.path(request.kept(name))) for name in (*request.files, *request.absent)}
    return {name: text for name, text in texts.items() if text is not None}


def _restart_id(machine: Machine, request: Request) -> str:
    return (read_text(machine.path(RESTART_FILE)) or "").strip() if request.role == "controller" else ""


def gather(machine: Machine, request: Request) -> Node:
    version, users = _version(machine, request), _users(machine)
    found = {name: _present(machine, request.path(name), users) for name in (*request.files, *request.absent)}
    pending = _pending(machine, request)
    return Node(version, {name: present for name, present in found.items() if present is not None},
                {name: _service(machine, name) for name in request.services}, pending,
                _kept(machine, request) if pending else {}, _restart_id(machine, request), users)


# -- files ------------------------------------------------------------------------------------------------


def _put(path: Path, text: str, mode: int, ids: tuple[int, int]) -> None:
    """Durable, and complete before anybody can see it under its name."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        status = os.fstat(stream.fileno())
        if (status.st_uid, status.st_gid) != ids:
            os.fchown(stream.fileno(), *ids)
        os.fchmod(stream.fileno(), mode)
        stream.write(text.encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())


def stage(machine: Machine, request: Request, node: Node, names: t.Sequence[str]) -> None:
    """All new files beside the old ones: a disk that is full shows here, before anything is replaced."""
    folder = machine.path(request.path(NEW))
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700, parents=True)
        for name in names:
            _put(folder / name, request.files[name], request.mode(name), node.users[request.owner(name)])
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise AidcError([Problem(request.directory, error.strerror or str(error), "room for the new files",
                                 "free some space on the file system")]) from error


def forget(machine: Machine, request: Request) -> None:
    """What an earlier run has kept is no way back from this one."""
    folder = machine.path(request.kept(""))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)


def keep(machine: Machine, request: Request, name: str) -> None:
    """The old file under a second name: a link needs no room, and a replaced file stays what it was."""
    os.link(machine.path(request.path(name)), machine.path(request.kept(name)))


def mark(machine: Machine, request: Request, plan: Plan, new: t.Sequence[str]) -> None:
    text = json.dumps({"action": plan.action, "compute_action": plan.compute_action, "why": plan.why, "new": new})
    write_atomic(machine.path(request.pending_file), text + "\n", 0o600)


def note_restart(machine: Machine, plan: Plan) -> None:
    try:
        write_atomic(machine.path(RESTART_FILE), plan.restart_id + "\n", 0o644)
    except OSError as error:
        raise AidcError([Problem(RESTART_FILE, error.strerror or str(error), "a note that every slurmd starts again",
                                 "is the file system writable? The daemon runs with its files")]) from error


def move_in(machine: Machine, request: Request, name: str) -> None:
    os.replace(machine.path(request.path(f"{NEW}/{name}")), machine.path(request.path(name)))


def restore(machine: Machine, request: Request, new: t.Sequence[str]) -> list[tuple[str, ...]]:
    """The files as they were before: those that were kept, and none where there was none."""
    done: list[tuple[str, ...]] = []
    folder = machine.path(request.kept(""))
    for name in (*request.files, *request.absent):
        if (folder / name).exists():
            target = machine.path(request.path(name))
            spare = folder / f".{name}"
            with contextlib.suppress(FileNotFoundError):
                spare.unlink()
            os.link(folder / name, spare)
            os.replace(spare, target)
            done.append(("write", request.path(name)))
        elif name in new:
            remove(machine.path(request.path(name)))
            done.append(("remove", request.path(name)))
    return done


def clean(machine: Machine, request: Request) -> None:
    shutil.rmtree(machine.path(request.path(NEW)), ignore_errors=True)
