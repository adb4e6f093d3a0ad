# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read and write the intent file, and record in it what a module has applied."""
from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from datetime import datetime, timezone

from .._host.errors import AidcError, Problem
from .._host.files import read_text, write_atomic
from .._host.lock import host_lock
from .._host.machine import Machine
from .model import FILE_MODE, PATH, TIME_FORMAT, Intent, options_of, parse

Call = t.Callable[[Machine], "dict[str, t.Any]"]


def read(machine: Machine, path: str = PATH) -> Intent | None:
    """None where there is no file; AidcError for one that is no intent of this version."""
    try:
        text = read_text(machine.path(path))
    except OSError as error:
        raise AidcError([Problem(path, error.strerror or str(error), "a readable file", "run as root")]) from error
    return None if text is None else parse(text, path)


def write(machine: Machine, path: str, text: str, done: t.Sequence[t.Sequence[str]] = ()) -> None:
    try:
        write_atomic(machine.path(path), text, FILE_MODE)
    except OSError as error:
        problem = Problem(path, error.strerror or str(error), "the new text in its place",
                          "is /etc writable, and the disk not full?")
        raise AidcError([problem], done) from error


def now() -> str:
    return datetime.now(timezone.utc).strftime(TIME_FORMAT)


def _step(old: t.Any, shape: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    why = "the intent has no such section" if old is None else "the intent says something else"
    return {**shape, "command": ["write", PATH], "disruptive": "none", "why": why}


def recorded(
    machine: Machine, section: str, params: t.Mapping[str, t.Any], check_mode: bool, call: Call,
    shape: t.Mapping[str, t.Any],
) -> dict[str, t.Any]:
    """The result of ``call``, whose options are then the module's section of the intent; ``shape`` is an empty step.

    A file that cannot be read is told before anything is written. What was deferred is not recorded, as it is not so.
    """
    if not params["persistent"]:
        return call(machine)
    with contextlib.nullcontext() if check_mode else host_lock(machine, section):
        before = read(machine) or Intent()
        result = call(machine if check_mode else dataclasses.replace(machine, locked=True))
        old, options = before.sections.get(section), options_of(params)
        if old == options or result.get("deferred"):
            return result
        if not check_mode:
            write(machine, PATH, before.with_section(section, options, now()).text(), result["commands"])
    diff = {side: {**result["diff"][side], "intent": value} for side, value in (("before", old), ("after", options))}
    return {**result, "changed": True, "commands": [*result["commands"], ["write", PATH]],
            "steps": [*result["steps"], _step(old, shape)], "diff": diff}
