# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Arm, prolong and cancel the undo of a change; read what an earlier one left."""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import signal
import stat
import sys
import typing as t
import uuid
from datetime import datetime, timezone

from .._host.errors import AidcError, Problem
from .._host.files import read_text, remove, write_atomic
from .._host.lock import LOCK_FILE
from .._host.machine import Machine
from . import parse, undo
from .model import (
    BOOT_ID,
    FILE_MODE,
    FOLDER,
    FOLDER_MODE,
    INTENT,
    MIN_SECONDS,
    TIME_FORMAT,
    UNIT_MODE,
    UNITS,
    Record,
    Undo,
    boot_unit,
)

_TUPLES = ("files", "problems", "unit_files")
_NESTED = ("commands", "links")


@dataclasses.dataclass(frozen=True)
class Call:
    """The module's call. ``seconds`` 0: nothing is armed, as nobody would cancel it."""

    module: str
    digest: str
    seconds: float


def call_of(module: str, request: t.Any) -> Call:
    """Two calls that want the same have the same digest."""
    same = dataclasses.replace(request, revert_seconds=0)
    return Call(module, hashlib.sha256(repr(same).encode()).hexdigest()[:16], request.revert_seconds)


def armed_request(request: t.Any, params: t.Mapping[str, t.Any]) -> t.Any:
    """The request of a module that a controller called, which will cancel. Raises AidcError for too short a time."""
    seconds = params["revert_seconds"]
    if params["allow_management"] and seconds < MIN_SECONDS:
        raise AidcError([Problem("revert_seconds", str(seconds), f"at least {MIN_SECONDS}",
                                 "the controller needs that time to come back")])
    return dataclasses.replace(request, revert_seconds=seconds if params["allow_management"] else 0)


# -- records --------------------------------------------------------------------------------------


def _path(record: Record, suffix: str = "json") -> str:
    return f"{FOLDER}/{record.id}.{suffix}"


def _record(text: str) -> Record:
    data = json.loads(text)
    values = {field.name: data[field.name] for field in dataclasses.fields(Record) if field.name in data}
    values.update({name: tuple(values.get(name, ())) for name in _TUPLES})
    values.update({name: tuple(map(tuple, values.get(name, ()))) for name in _NESTED})
    return Record(**values)


def records(machine: Machine, module: str | None = None) -> list[Record]:
    """All that are there; one that cannot be read is told by its absence only, as it can undo nothing."""
    found = []
    folder = machine.path(FOLDER)
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found.append(_record(path.read_text(encoding="utf-8")))
    return [record for record in found if module in (None, record.module)]


def _save(machine: Machine, record: Record) -> None:
    text = json.dumps(dataclasses.asdict(record))
    write_atomic(machine.path(_path(record)), text, FILE_MODE, FOLDER_MODE)


def forget(machine: Machine, record: Record) -> None:
    """Without its record the program that undoes ends by itself."""
    for path in (*record.unit_files, _path(record), _path(record, "py")):
        remove(machine.path(path))
    if record.timer == "systemd":
        machine.tool("systemctl", "stop", f"{record.unit}.timer")
    if record.unit_files:
        machine.tool("systemctl", "daemon-reload")


# -- what is saved --------------------------------------------------------------------------------


def _file(machine: Machine, path: str) -> dict[str, t.Any]:
    real = machine.path(path)
    text = read_text(real)
    return {"path": path, "text": text, "mode": stat.S_IMODE(real.stat().st_mode) if text is not None else 0}


def _ask(
    machine: Machine, argv: tuple[str, ...], parser: t.Callable[[str], list[parse.Command]],
) -> list[parse.Command]:
    bad: list[Problem] = []
    found = machine.tool(*argv).parsed(parser, bad, "its JSON output", "without it the state cannot be saved")
    if found is None:
        raise AidcError(bad)
    return found


def _links(machine: Machine, netdevs: t.Collection[str]) -> tuple[parse.Command, ...]:
    if not netdevs:
        return ()
    found = _ask(machine, ("ip", "-d", "-j", "addr", "show"), lambda text: parse.links(text, netdevs))
    for version in (4, 6):
        argv = ("ip", "-j", f"-{version}", "route", "show", "table", "all")
        found += _ask(machine, argv, lambda text, version=version: parse.routes(text, version, netdevs))  # type: ignore[misc]
    return tuple(found)


def _saved(machine: Machine, call: Call, wanted: Undo) -> Record:
    """With an undo of the same module still armed, its older state is the one to go back to."""
    now = datetime.now(timezone.utc).strftime(TIME_FORMAT)
    record = Record(
        f"{call.module}-{uuid.uuid4().hex[:8]}", call.module, call.digest, call.seconds,
        machine.monotonic() + call.seconds, lock=str(machine.path(LOCK_FILE)), armed_at=now,
        files=tuple(_file(machine, path) for path in dict.fromkeys((*wanted.files, INTENT))),
        commands=wanted.commands, links=_links(machine, wanted.netdevs),
        boot_id=(read_text(machine.path(BOOT_ID)) or "").strip())
    for older in records(machine, call.module):
        if older.state == "armed":
            known = {file["path"] for file in older.files}
            record = dataclasses.replace(
                record, files=(*older.files, *(file for file in record.files if file["path"] not in known)),
                commands=(*record.commands, *older.commands), links=(*record.links, *older.links))
    return record


# -- the timer ------------------------------------------------------------------------------------


def _program() -> str:
    """The text of undo.py, which on a host lies in the archive that the module came in."""
    spec = importlib.util.find_spec(undo.__name__)
    source = spec.loader.get_source(undo.__name__) if spec and spec.loader else None  # type: ignore[attr-defined]
    if source is None:
        raise AidcError([Problem("the program that undoes", "no source", "its text in the module's archive")])
    return str(source)


def _command(machine: Machine, record: Record) -> tuple[str, ...]:
    return (sys.executable or "/usr/bin/python3", "-I", str(machine.path(_path(record, "py"))),
            str(machine.path(_path(record))))


def _for_the_next_boot(machine: Machine, record: Record) -> Record:
    """A unit that only a boot starts; the record names it before it is there."""
    if not machine.path("/run/systemd/system").is_dir():
        return record
    name = f"{record.unit}-boot.service"
    unit, link = f"{UNITS}/{name}", f"{UNITS}/sysinit.target.wants/{name}"
    record = dataclasses.replace(record, unit_files=(link, unit))
    _save(machine, record)
    write_atomic(machine.path(unit), boot_unit((*_command(machine, record), "--boot")), UNIT_MODE)
    where = machine.path(link)
    where.parent.mkdir(parents=True, exist_ok=True)
    where.symlink_to(f"../{name}")
    return record


def _start(machine: Machine, record: Record) -> str:
    """A timer of systemd, which outlives our session; without systemd a process that left it."""
    program = _command(machine, record)
    asked = machine.tool("systemd-run", "--quiet", "--collect", f"--on-active={record.seconds:g}",
                         "--timer-property=AccuracySec=100ms", f"--unit={record.unit}", *program)
    state = machine.tool("systemctl", "is-active", f"{record.unit}.timer") if asked.state == "ok" else asked
    if state.stdout.strip() == "active":
        return "systemd"
    started = machine.tool("setsid", "--fork", *program)
    if started.state == "ok":
        return "process"
    raise AidcError([Problem("armed revert", f"no timer: {asked.why()}; {started.why()}",
                             "systemd-run, or setsid of util-linux", "without it a rail with the connection is not "
                             "changed")])


def arm(machine: Machine, call: Call, wanted: Undo) -> Record:
    """Before the first write. Raises AidcError where it cannot be done; then nothing was changed."""
    older = [record for record in records(machine, call.module) if record.state == "armed"]
    try:
        record = _saved(machine, call, wanted)
        write_atomic(machine.path(_path(record, "py")), _program(), FILE_MODE, FOLDER_MODE)
        _save(machine, record)
        try:
            record = _for_the_next_boot(machine, record)
            record = dataclasses.replace(record, timer=_start(machine, record))
        except AidcError:
            forget(machine, record)
            raise
        _save(machine, record)
    except OSError as error:
        raise AidcError([Problem(str(error.filename or FOLDER), error.strerror or str(error), "the state saved there",
                                 f"are {FOLDER} and {UNITS} writable, and not full?")]) from error
    for one in older:
        forget(machine, one)
    # The loss of the connection may end the session we are in; we end when all is written.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return record


def undo_now(machine: Machine, record: Record) -> Problem:
    """After an error: at once, as it is known that the change is no good."""

    def run(argv: t.Sequence[str]) -> str:
        result = machine.run(argv, undo.COMMAND_SECONDS)
        return "" if result.state == "ok" else result.why()

    data = json.loads(json.dumps(dataclasses.asdict(record)))
    root = str(machine.root).rstrip("/")
    problems = undo.restore(data, run, root, machine.sleep)
    forget(machine, record)
    bad = f"; not restored: {'; '.join(problems)}" if problems else ""
    return Problem("the state before", f"restored on the host{bad}", "a change without an error",
                   "the port carries the way to the host")


@contextlib.contextmanager
def guarded(machine: Machine, call: Call, wanted: Undo | None) -> t.Iterator[list[Record]]:
    """Around the writes and the read back. What it yields has the armed record, if there is need for one."""
    if wanted is None or not call.seconds:
        yield []
        return
    record = arm(machine, call, wanted)
    try:
        yield [record]
    except AidcError as error:
        raise AidcError([*error.problems, undo_now(machine, record)], error.done) from error
    # The time counts from the last write.
    _save(machine, dataclasses.replace(record, deadline=machine.monotonic() + call.seconds))


def left_behind(machine: Machine, call: Call, check_mode: bool) -> list[Record]:
    """Of an earlier call: what is still armed, which this call shows to the controller. A change that was undone is an
    error, told once, if the same is asked for again. A call that arms nothing leaves it to one that may."""
    if not call.seconds:
        return []
    armed, same = [], []
    for record in records(machine, call.module):
        if record.state == "armed":
            armed.append(record)
            continue
        if record.digest == call.digest:
            same.append(record)
        if not check_mode:
            forget(machine, record)
    if same:
        raise AidcError([Problem(f"an earlier run of {call.module}", record.told(), "a change that leaves the way to "
                                 "the host", "change the values; the next run tries these again") for record in same])
    return armed


def public(found: t.Sequence[Record]) -> dict[str, t.Any] | None:
    return found[0].public() if found else None


def cancel(machine: Machine, module: str | None) -> list[Record]:
    """Under the host's lock, so not while one is being undone. Returns what was there before."""
    found = records(machine, module)
    for record in found:
        if record.state == "armed":
            forget(machine, record)
    return found
