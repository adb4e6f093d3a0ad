# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of slurm_reservation from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from .._host.machine import Machine
from . import hold_plan, hostlist, node_io
from .hold_model import OURS, Request, Reservation, Step

# What slurmctld says when jobs run there (24.11).
_BUSY = "Requested nodes are busy"


def read(machine: Machine) -> list[Reservation]:
    asked = machine.tool("scontrol", "-o", "show", "reservation")
    bad: list[Problem] = []
    found = asked.parsed(hold_plan.parse, bad, "scontrol show reservation", "does slurmctld answer? See scontrol ping")
    if found is None:
        raise AidcError(bad)
    return found


def _jobs(machine: Machine, request: Request) -> str:
    """Who is in the way, for the error's words."""
    asked = machine.tool("squeue", "--noheader", "--states=running,completing,suspended",
                         f"--nodelist={hostlist.compress(request.nodes, sort=True)}", "--format=%i %u %N")
    lines = asked.stdout.split("\n") if asked.state == "ok" else []
    words = [f"job {job} of {user} on {nodes}" for job, user, nodes in (
        line.split(None, 2) for line in lines if len(line.split(None, 2)) == 3)]
    return "; ".join(words[:5]) + (f"; and {len(words) - 5} more" if len(words) > 5 else "")


def _failed(machine: Machine, request: Request, step: Step, why: str) -> Problem:
    if step.command[1] == "create" and _BUSY in why:
        return Problem(request.name, _jobs(machine, request) or _BUSY, "nodes without jobs",
                       "wait for the jobs, or leave their nodes out")
    hint = "another reservation holds some of the nodes: scontrol show reservation" if "overlaps" in why else ""
    return Problem(" ".join(step.command[:4]), why, "success", hint)


def _apply(machine: Machine, request: Request, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for step in steps:
        result = machine.tool(*step.command)
        if result.state != "ok":
            raise AidcError([_failed(machine, request, step, result.why())], done)
        done.append(step.command)


def _result(request: Request, before: t.Sequence[Reservation], steps: t.Sequence[Step],
            after: t.Sequence[Reservation]) -> dict[str, t.Any]:
    old, new = ([one.as_dict() for one in found if one.name.startswith(OURS)] for found in (before, after))
    return {
        "changed": bool(steps), "before": old, "after": new, "name": request.name if request.run_id else "",
        "commands": [list(step.command) for step in steps], "steps": [step.as_dict() for step in steps],
        "diff": {"before": {one["name"]: one["nodes"] for one in old},
                 "after": {one["name"]: one["nodes"] for one in new}},
    }


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    problems = hold_plan.check(request)
    if problems:
        raise AidcError(problems)
    request = dataclasses.replace(request, nodes=node_io.expand(machine, request.nodes) if request.nodes else ())
    if check_mode:
        before = read(machine)
        steps = hold_plan.plan(request, before)
        return _result(request, before, steps, hold_plan.predict(request, before, steps))
    with host_lock(machine, "slurm_reservation"):
        before = read(machine)
        steps = hold_plan.plan(request, before)
        if not steps:
            return _result(request, before, steps, before)
        _apply(machine, request, steps)
        after = read(machine)
    bad = hold_plan.verify(request, after)
    if bad:
        raise AidcError(bad, [step.command for step in steps])
    return _result(request, before, steps, after)
