# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of rdma_stack from beginning to end: read, check, plan, restart the driver, read back."""
from __future__ import annotations

import contextlib
import typing as t
from dataclasses import dataclass

from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from .._host.machine import Machine
from .._host.runner import Result
from . import io, plan
from .model import Node, Request, Step

# udev gives the new netdevs their names while the restart has already ended.
SETTLE_SECONDS = 60.0
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Decision:
    """``users_known`` None: not asked."""

    steps: tuple[Step, ...] = ()
    deferred: tuple[dict[str, str], ...] = ()
    users_known: bool | None = None


def _result(request: Request, before: Node, decision: Decision, after: Node) -> dict[str, t.Any]:
    old, new = {"loaded": plan.state(before)}, {"loaded": plan.state(after)}
    return {
        "changed": bool(decision.steps),
        "before": old,
        "after": new,
        "commands": [list(step.command) for step in decision.steps],
        "steps": [step.as_dict() for step in decision.steps],
        "deferred": list(decision.deferred),
        "rdma_users_known": decision.users_known,
        "diff": {"before": old, "after": new},
        **plan.summary(request, after),
    }


def _decide(machine: Machine, request: Request, node: Node) -> Decision:
    steps = plan.plan(request, node)
    if not steps:
        return Decision()
    impact = io.impact(machine)
    deferred = plan.deferred(request, node, impact)
    return Decision(() if deferred else tuple(steps), tuple(deferred), impact.users_known)


def _read_back(machine: Machine, request: Request, before: Node) -> tuple[Node, list[Problem]]:
    deadline = machine.monotonic() + SETTLE_SECONDS
    while True:
        node = io.gather(machine, request)
        problems = [*node.problems, *plan.verify(before, node)]
        if not problems or machine.monotonic() >= deadline:
            return node, problems
        machine.sleep(POLL_SECONDS)


def _said(step: Step, result: Result) -> list[Problem]:
    """What the command said where the read back found something wrong."""
    words = result.said() or "nothing"
    ended = f"exit status {result.rc}" if result.rc is not None else result.why()
    return [Problem(" ".join(step.command), f"{ended}, and it printed: {words}", "a driver that is loaded")]


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    wrong = plan.values(request)
    if wrong:
        raise AidcError(wrong)
    # Without a restart it only reads, and needs neither root nor the lock.
    changes = request.restart and not check_mode
    with host_lock(machine, "rdma_stack") if changes else contextlib.nullcontext():
        node = io.gather(machine, request)
        problems = plan.check(request, node)
        if problems:
            raise AidcError(problems)
        decision = _decide(machine, request, node)
        if not decision.steps:
            return _result(request, node, decision, node)
        if check_mode:
            return _result(request, node, decision, plan.predict(node))
        step = decision.steps[0]
        said = io.apply(machine, step)
        after, problems = _read_back(machine, request, node)
        if problems:
            done = [] if said.state == "missing" else [step.command]
            raise AidcError([*problems, *_said(step, said)], done)
        return _result(request, node, decision, after)
