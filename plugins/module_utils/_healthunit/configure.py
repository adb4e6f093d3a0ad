# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of slurm_health from beginning to end: read, check, plan, apply, read back, ask the program."""
from __future__ import annotations

import json
import typing as t

from .._health.model import EXIT_BAD, EXIT_OK, MOST_SECONDS, PROGRAM
from .._host.errors import AidcError, Problem
from .._host.files import remove, write_atomic
from .._host.installed import present
from .._host.lock import host_lock
from .._host.machine import Machine
from . import model
from .model import MODES, OURS, Node, Request, Step


def gather(machine: Machine) -> Node:
    found = {path: present(machine, path, PROGRAM) for path in OURS}
    return Node({path: file for path, file in found.items() if file is not None})


def _apply(machine: Machine, request: Request, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for step in steps:
        action, path = step.command
        try:
            if action == "remove":
                remove(machine.path(path))
            else:
                content = step.text if step.text is not None else machine.path(request.source).read_bytes()
                write_atomic(machine.path(path), content, MODES[path])
        except OSError as error:
            problem = Problem(path, error.strerror or str(error), f"{action} to succeed", "is the disk full?")
            raise AidcError([problem], done) from error
        done.append(step.command)


def _asked(machine: Machine, request: Request) -> tuple[dict[str, t.Any] | None, str | None]:
    """What the installed program says of the host; None and why where it cannot tell."""
    if not request.ask or request.state == "absent":
        return None, None
    if not machine.path(PROGRAM).exists():
        return None, f"{PROGRAM} is not there"
    result = machine.run((PROGRAM, "check", "--json"), MOST_SECONDS + 20.0)
    if result.rc not in (EXIT_OK, EXIT_BAD):
        return None, result.why()
    try:
        data = json.loads(result.stdout)
        return {"results": list(data["results"]), "failed": dict(data["failed"])}, None
    except (ValueError, KeyError, TypeError):
        return None, f"{PROGRAM} check: got output that cannot be read: {result.said() or 'nothing'}"


def _result(machine: Machine, request: Request, before: Node, steps: t.Sequence[Step],
            after: Node | None) -> dict[str, t.Any]:
    old = model.state(before)
    new = model.predict(request) if after is None else model.state(after)
    health, why = _asked(machine, request)
    return {"changed": bool(steps), "before": old, "after": new, "commands": [list(step.command) for step in steps],
            "steps": [step.as_dict() for step in steps], "health": health, "health_why": why,
            "diff": {"before": old, "after": new}}


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way.

    Where the program must be written and its bytes did not come along, the result is only ``needs_source``.
    """
    problems = model.check(request)
    if problems:
        raise AidcError(problems)
    if check_mode:
        node = gather(machine)
        return _result(machine, request, node, model.plan(request, node), None)
    with host_lock(machine, "slurm_health"):
        node = gather(machine)
        steps = model.plan(request, node)
        if model.needs_source(request, node) and not request.source:
            return {"changed": False, "needs_source": True, "commands": []}
        _apply(machine, request, steps)
        after = gather(machine) if steps else node
        problems = model.verify(request, after)
        if problems:
            raise AidcError(problems, [step.command for step in steps])
    return _result(machine, request, node, steps, after)
