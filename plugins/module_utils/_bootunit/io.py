# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read the boot tool's files, write them, and ask the tool what differs."""
from __future__ import annotations

import json
import typing as t

from .._host.errors import AidcError, Problem
from .._host.files import remove, write_atomic
from .._host.installed import present
from .._host.machine import Machine
from .._intent import io as intent_io
from .._intent.model import GOOD_PATH, PATH
from .model import PENDING_FILE, TOOL, UNIT, Node, Request, Step
from .plan import OURS

# The tool asks all that the modules ask.
TOOL_SECONDS = 120.0
EXIT_OK, EXIT_DIFFERS = 0, 2


def gather(machine: Machine) -> Node:
    found = {path: present(machine, path, TOOL) for path in OURS}
    asked = machine.tool("systemctl", "is-enabled", UNIT)
    # It exits 1 and says the word for all that is not enabled; an old one says nothing of a unit that is not there.
    if asked.state in ("missing", "timeout"):
        raise AidcError([Problem("systemctl is-enabled", asked.why(), "the state of a unit",
                                 "the boot tool needs systemd")])
    words = asked.stdout.split()
    return Node({path: file for path, file in found.items() if file is not None},
                words[0] if words else "not-found", machine.path(PENDING_FILE).exists())


def _carry_out(machine: Machine, request: Request, step: Step) -> Problem | None:
    action, path = step.command[0], step.command[-1]
    try:
        if action == "write":
            content = step.text if step.text is not None else machine.path(request.source).read_bytes()
            write_atomic(machine.path(path), content, step.mode)
            return None
        if action == "remove":
            remove(machine.path(path))
            return None
    except OSError as error:
        return Problem(path, error.strerror or str(error), f"{action} to succeed", "is the file system writable?")
    result = machine.tool(*step.command)
    return None if result.state == "ok" else Problem(" ".join(step.command), result.why(), "success", step.why)


def apply(machine: Machine, request: Request, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for step in steps:
        problem = _carry_out(machine, request, step)
        if problem is not None:
            raise AidcError([problem], done)
        done.append(step.command)


def drift(machine: Machine, request: Request) -> tuple[list[dict[str, t.Any]] | None, str]:
    """What the installed tool says; None and why where it cannot tell."""
    if not machine.path(TOOL).exists():
        return None, f"{TOOL} is not there"
    result = machine.run((request.python, TOOL, "--check", "--json"), TOOL_SECONDS)
    if result.rc not in (EXIT_OK, EXIT_DIFFERS):
        return None, result.why()
    try:
        return list(json.loads(result.stdout)["drift"]), ""
    except (ValueError, KeyError, TypeError):
        return None, f"{TOOL} --check: got output that cannot be read: {result.said() or 'nothing'}"


def times(machine: Machine) -> dict[str, str | None]:
    """When the intent and the last good one were written; None for one that is not there or cannot be read."""
    found: dict[str, str | None] = {}
    for name, path in (("intent_time", PATH), ("good_time", GOOD_PATH)):
        try:
            intent = intent_io.read(machine, path)
        except AidcError:
            intent = None
        found[name] = intent.time if intent else None
    return found
