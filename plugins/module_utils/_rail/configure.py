# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of rail_network from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._host.errors import AidcError, Problem
from .._host.lock import host_lock
from .._host.machine import Machine
from .._idle import io as idle_io
from .._idle import plan as idle_plan
from .._idle.model import Port as IdlePort
from .._revert import io as revert_io
from . import check, io, plan, revert
from .apply import Applying
from .model import Node, Request, Step

# An owner may still be at work when its tool has come back.
SETTLE_SECONDS = 20.0
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Users:
    """``known`` None: not asked. ``deferred`` are rails whose link a step would stop while somebody uses it."""

    known: bool | None = None
    deferred: t.Sequence[dict[str, t.Any]] = ()


def _result(
    request: Request, before: Node, steps: t.Sequence[Step], after: Node | None, users: Users,
) -> dict[str, t.Any]:
    """What the module returns; without ``after`` (check mode) the values that the steps will give."""
    old = plan.state(request, before)
    new = plan.state(request, after) if after is not None else plan.predict(request, before) if steps else old
    return {
        "changed": bool(steps),
        "before": old,
        "after": new,
        "commands": [list(step.command) for step in steps],
        "steps": [step.as_dict() for step in steps],
        "deferred": list(users.deferred),
        "rdma_users_known": users.known,
        "armed": None,
        "rails": plan.details(request, after or before),
        "diff": {"before": {entry["pci"]: entry for entry in old}, "after": {entry["pci"]: entry for entry in new}},
    }


def _plan(machine: Machine, request: Request) -> tuple[Node, list[Step]]:
    node = io.gather(machine, request)
    problems = check.check(request, node)
    steps = [] if problems else plan.plan(request, node)
    if not problems:
        # Nothing to do is a claim too: it must hold.
        problems = plan.lost(request, node, steps) if steps else plan.verify(request, node)
    if problems:
        raise AidcError(problems)
    return node, steps


def _users(machine: Machine, request: Request, node: Node, steps: t.Sequence[Step]) -> Users:
    """Who would be disturbed. With one rail in use nothing is done at all."""
    touched = {netdev for step in steps if step.disruptive == "link" for netdev in step.netdevs}
    if not touched:
        return Users()
    ports = [IdlePort(want.pci, node.netdev(want.pci), want.rail) for want in request.rails
             if node.netdev(want.pci) in touched]
    decision = idle_plan.decide(request.disruption_policy, ports,
                                lambda: idle_io.gather(machine, [port.pci for port in ports]))
    commands = [step.command for step in steps]
    return Users(decision.known, [idle_plan.entry(port, commands, decision.busy[port.pci]) for port in ports
                                  if port.pci in decision.busy])


def _read_back(machine: Machine, request: Request) -> tuple[Node, list[Problem]]:
    deadline = machine.monotonic() + SETTLE_SECONDS
    while True:
        node = io.gather(machine, request)
        problems = list(check.check(request, node)) or plan.verify(request, node)
        if not problems or machine.monotonic() >= deadline:
            return node, problems
        machine.sleep(POLL_SECONDS)


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    wrong = check.values(request)
    if wrong:
        raise AidcError(wrong)
    if check_mode:
        revert_io.left_behind(machine, revert_io.call_of("rail_network", request), check_mode)
        node, steps = _plan(machine, request)
        users = _users(machine, request, node, steps)
        return _result(request, node, () if users.deferred else steps, None, users)
    with host_lock(machine, "rail_network"):
        call = revert_io.call_of("rail_network", request)
        before = revert_io.left_behind(machine, call, check_mode)
        node, steps = _plan(machine, request)
        users = _users(machine, request, node, steps)
        if users.deferred or not steps:
            return {**_result(request, node, (), node, users), "armed": revert_io.public(before)}
        with revert_io.guarded(machine, call, revert.undo(request, node, steps)) as armed:
            Applying(machine).run(steps, node.pending)
            after, problems = _read_back(machine, request)
            if problems:
                raise AidcError(problems, [step.command for step in steps])
            return {**_result(request, node, steps, after, users), "armed": revert_io.public(armed or before)}
