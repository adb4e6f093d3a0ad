# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of roce_qos from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from .._idle import io as idle_io
from .._idle import plan as idle_plan
from .._net import io as net_io
from .._net import plan as net_plan
from .._revert import io as revert_io
from .._revert.model import Undo
from . import factory, idle, io, plan, revert
from .backend import Backend
from .model import Node, Request, Step


@dataclass(frozen=True)
class Doing:
    """What of the request is done now: ``left`` of it, by these steps; and what waits for whom."""

    left: Request
    steps: t.Sequence[Step]
    deferred: t.Sequence[dict[str, t.Any]] = ()
    users_known: bool | None = None
    undo: Undo | None = None


def _result(request: Request, before: Node, doing: Doing, after: Node | None) -> dict[str, t.Any]:
    """What the module returns; without ``after`` (check mode) the values that the steps will give."""
    old, steps = plan.state(request, before), doing.steps
    new = plan.state(request, after) if after is not None else [
        {**entry, **will} for entry, will in zip(old, plan.predict(doing.left, before))]
    return {
        "changed": bool(steps),
        "before": old,
        "after": new,
        "commands": [list(step.command) for step in steps],
        "steps": [step.as_dict() for step in steps],
        "deferred": list(doing.deferred),
        "rdma_users_known": doing.users_known,
        "armed": None,
        "backend": before.backend,
        "unsupported": plan.unsupported(request, before),
        "findings": plan.findings(request, after or before),
        "diff": {"before": {entry["pci"]: entry for entry in old}, "after": {entry["pci"]: entry for entry in new}},
    }


def _check_uses(machine: Machine, request: Request, node: Node, steps: list[Step]) -> set[str]:
    """What the ports carry is asked only if a link is to stop. Returns the links that carry the way to the host."""
    if not any(step.disruptive == "link" for step in steps):
        return set()
    net = net_io.gather(machine)
    uses = net_plan.uses(net)
    problems = [*net.problems, *plan.check_uses(steps, node, uses, request.allow_management)]
    if problems:
        raise AidcError(problems)
    return net_plan.management(uses)


def _hold_back(machine: Machine, request: Request, node: Node, steps: list[Step], backend: Backend) -> Doing:
    """The plan without what would disturb somebody."""
    ports = idle.ports(request, node, steps)
    decision = idle_plan.decide(request.disruption_policy, ports,
                                lambda: idle_io.gather(machine, [port.pci for port in ports]))
    if not decision.busy:
        return Doing(request, steps, (), decision.known)
    left = idle.reduced(request, decision.busy)
    kept = plan.plan(left, node, backend)
    return Doing(left, kept, idle.deferred(ports, decision, steps, kept), decision.known)


def _plan(machine: Machine, request: Request) -> tuple[Node, Doing, Backend]:
    ports = io.find_ports(machine, request)
    if ports.problems:
        raise AidcError(ports.problems)
    backend = factory.choose(machine, request.backend, [port.netdev for port in ports.ports.values()])
    node = io.gather(machine, request, ports, backend)
    problems = plan.check(request, node, backend)
    if problems:
        raise AidcError(problems)
    steps = plan.plan(request, node, backend)
    management = _check_uses(machine, request, node, steps)
    doing = _hold_back(machine, request, node, steps, backend)
    undo = revert.undo(doing.left, node, doing.steps, management, backend)
    return node, dataclasses.replace(doing, undo=undo), backend


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    if check_mode:
        revert_io.left_behind(machine, revert_io.call_of("roce_qos", request), check_mode)
        node, doing, _backend = _plan(machine, request)
        return _result(request, node, doing, None)
    with host_lock(machine, "roce_qos"):
        call = revert_io.call_of("roce_qos", request)
        before = revert_io.left_behind(machine, call, check_mode)
        node, doing, backend = _plan(machine, request)
        if not doing.steps:
            return {**_result(request, node, doing, node), "armed": revert_io.public(before)}
        with revert_io.guarded(machine, call, doing.undo) as armed:
            io.apply(machine, doing.steps)
            after = io.gather(machine, request, node, backend)
            problems = plan.verify(doing.left, after)
            if problems:
                raise AidcError(problems, [step.command for step in doing.steps])
            return {**_result(request, node, doing, after), "armed": revert_io.public(armed or before)}
