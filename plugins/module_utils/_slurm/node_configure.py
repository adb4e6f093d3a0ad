# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of slurm_node from beginning to end: read, check, plan, apply, read back, wait."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from . import node_io, node_plan
from .node_model import DRAINS, Request, SlurmNode, Step

# For a node that was resumed to answer; a drain waits for jobs and has the request's time.
ANSWER_SECONDS = 60.0


def _result(request: Request, before: node_plan.Nodes, steps: t.Sequence[Step],
            after: node_plan.Nodes) -> dict[str, t.Any]:
    names = request.nodes
    old, new = ([nodes[name].as_dict() for name in names] for nodes in (before, after))
    return {
        "changed": bool(steps), "before": old, "after": new,
        "commands": [list(step.command) for step in steps], "steps": [step.as_dict() for step in steps],
        "nodes": [after[name].details() for name in names],
        "held": [name for name in names if request.state in DRAINS and node_plan.held(request, before[name])],
        "diff": {"before": {entry["name"]: entry for entry in old}, "after": {entry["name"]: entry for entry in new}},
    }


def _plan(machine: Machine, request: Request) -> tuple[dict[str, SlurmNode], list[Step]]:
    nodes = node_io.read(machine, request.nodes) if request.nodes else {}
    problems = node_plan.check(request, nodes)
    if problems:
        raise AidcError(problems)
    return nodes, node_plan.plan(request, nodes)


def _wait(machine: Machine, request: Request, nodes: dict[str, SlurmNode],
          steps: t.Sequence[Step]) -> dict[str, SlurmNode]:
    seconds = request.wait_seconds if request.state in DRAINS else min(ANSWER_SECONDS, request.wait_seconds)
    after = node_io.wait(machine, request, nodes, seconds)
    problems = node_plan.unsettled(request, after, seconds) + node_plan.left_invalid(request, after)
    if problems:
        raise AidcError(problems, [step.command for step in steps])
    return after


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    request = dataclasses.replace(request, nodes=node_io.expand(machine, request.nodes))
    if check_mode:
        nodes, steps = _plan(machine, request)
        return _result(request, nodes, steps, node_plan.predict(request, nodes, steps))
    with host_lock(machine, "slurm_node"):
        nodes, steps = _plan(machine, request)
        after = nodes
        if steps:
            node_io.apply(machine, steps)
            after = node_io.read(machine, request.nodes)
            problems = node_plan.verify(request, after, steps)
            if problems:
                raise AidcError(problems, [step.command for step in steps])
    # Without the lock: jobs may run for hours, and others must be able to work on this host.
    return _result(request, nodes, steps, _wait(machine, request, after, steps))
