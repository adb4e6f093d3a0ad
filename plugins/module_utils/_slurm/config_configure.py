# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of slurm_config from beginning to end: read, check, plan, replace, act, read back, go back if it fails."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError, Problem
from .._host.files import remove
from .._host.lock import host_lock
from .._host.machine import Machine
from . import config_changes, config_io, config_plan, config_service
from .config_model import RESTART_FILE, Node, Plan, Request, Step

Done = list[tuple[str, ...]]
_FILES = ("keep", "write", "remove")


def _shown(state: dict[str, t.Any]) -> dict[str, t.Any]:
    return {**state["services"], **state["files"]}


def _result(request: Request, node: Node, plan: Plan, after: Node | None) -> dict[str, t.Any]:
    old = config_plan.state(node, request)
    new = config_plan.predict(request, node) if after is None else config_plan.state(after, request)
    return {
        "changed": bool(plan.steps), "before": old, "after": new,
        "commands": [list(step.command) for step in plan.steps],
        "steps": [step.as_dict() for step in plan.steps],
        "action": plan.action, "compute_action": plan.compute_action, "why": list(plan.why),
        "compute_restart_id": plan.restart_id, "version": str(node.version or ""),
        "diff": {"before": _shown(old), "after": _shown(new)},
    }


def _plan(machine: Machine, request: Request) -> tuple[Node, Plan]:
    node = config_io.gather(machine, request)
    problems = config_plan.check(request, node)
    if problems:
        raise AidcError(problems)
    # Before they lie there nobody can include them: so what is installed stays, and only the daemons are left alone.
    problems = config_service.not_included(machine, request) if request.state == "active" else []
    if problems:
        raise AidcError(problems)
    plan = config_plan.plan(request, node)
    if any(step.command[0] == "write" for step in plan.steps):
        problems = config_service.parse_problems(machine, request)
        if problems:
            raise AidcError(problems)
    return node, plan


def _parts(plan: Plan, request: Request) -> tuple[list[Step], list[Step]]:
    """Steps until the files are in place, and those of the daemons."""
    ends = (("write", RESTART_FILE), ("remove", request.pending_file))
    files = [step for step in plan.steps if step.command[0] in _FILES and step.command not in ends]
    return files, [step for step in plan.steps if step.command[0] not in _FILES or step.command in ends]


def _replace(machine: Machine, request: Request, node: Node, plan: Plan, steps: t.Sequence[Step], done: Done) -> None:
    """New files lie ready before the first one is moved in."""
    names = [name for name in request.files if ("write", request.path(name)) in {step.command for step in steps}]
    new = [name for name in names if name not in node.files]
    if node.pending:
        new += [name for name in node.pending.new if name not in new]
    if not steps:
        return
    config_io.stage(machine, request, node, names)
    if not node.pending:
        config_io.forget(machine, request)
    for step in steps:
        action, path = step.command
        name = path.rsplit("/", 1)[1]
        try:
            if action == "keep":
                config_io.keep(machine, request, name)
            elif path == request.pending_file:
                config_io.mark(machine, request, plan, new)
            elif action == "write":
                config_io.move_in(machine, request, name)
            else:
                remove(machine.path(path))
        except OSError as error:
            raise AidcError([Problem(path, error.strerror or str(error), f"{action} to succeed",
                                     "is the file system writable?")], done) from error
        done.append(step.command)
    config_io.clean(machine, request)


def _act(machine: Machine, request: Request, found: t.Sequence[config_changes.Change], steps: t.Sequence[Step],
         done: Done) -> list[Problem]:
    """Why the daemons did not take the files over; empty if they did."""
    for step in steps:
        if step.command[0] in _FILES:
            continue
        result = machine.run(step.command, request.start_seconds)
        done.append(step.command)
        if step.command == ("scontrol", "reconfigure"):
            problem = None if result.state == "ok" else Problem("scontrol reconfigure", result.why(), "success")
            bad = ([problem] if problem else []) + config_service.taken_over(machine, request, found)
        else:
            name = step.command[2][:-len(".service")]
            # systemd's word comes from waiting; why it failed, from the daemon's own log.
            waited = config_service.wait(machine, request, name)
            bad = [waited] if waited else []
        if bad:
            return bad
    return []


def _go_back(machine: Machine, request: Request, node: Node, problems: list[Problem], steps: t.Sequence[Step],
             done: Done) -> AidcError:
    """The old files and a daemon that runs with them; the first problem stays the first."""
    new = [name for name in request.files if name not in node.files] if not node.pending else list(node.pending.new)
    try:
        undone = config_io.restore(machine, request, new)
    except OSError as error:
        lost = Problem(request.directory, error.strerror or str(error), "the old files again",
                       f"they are in {request.kept('')}")
        return AidcError([*problems, lost], done)
    done += undone
    if not undone:
        return AidcError(problems, done)
    remove(machine.path(request.pending_file))
    for step in steps:
        command = step.command
        if command[0] == "systemctl" and node.services.get(command[2][:-len(".service")]) != "active":
            # Without its files it would only be started again and again.
            command = ("systemctl", "stop", command[2])
        if command[0] in ("systemctl", "scontrol"):
            machine.run(command, request.start_seconds)
            done.append(command)
    running = [config_service.wait(machine, request, name) for name in request.services
               if node.services.get(name) == "active"]
    still = [problem for problem in running if problem]
    told = Problem(request.directory, "new files that the daemon does not take", "files that it runs with",
                   "the old files are back" + ("" if still else ", and it runs with them"))
    return AidcError([*problems, told, *still], done)


def _carry_out(machine: Machine, request: Request, node: Node, plan: Plan) -> Node:
    done: Done = []
    files, acts = _parts(plan, request)
    found = config_changes.changes(config_plan.before(node), request.files)
    _replace(machine, request, node, plan, files, done)
    problems = _act(machine, request, found, acts, done)
    if problems and (files or node.pending):
        raise _go_back(machine, request, node, problems, acts, done)
    if problems:
        # The files are those that were there, so what an earlier run has kept is no way out.
        raise AidcError(problems, done)
    if ("write", RESTART_FILE) in {step.command for step in acts}:
        config_io.note_restart(machine, plan)
    if acts:
        remove(machine.path(request.pending_file))
    after = config_io.gather(machine, request)
    bad = config_plan.verify(request, after)
    if bad:
        raise AidcError(bad, done)
    return after


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    if check_mode:
        node, plan = _plan(machine, request)
        return _result(request, node, plan, None)
    with host_lock(machine, "slurm_config"):
        node, plan = _plan(machine, request)
        after = _carry_out(machine, request, node, plan) if plan.steps else node
    return _result(request, node, plan, after)
