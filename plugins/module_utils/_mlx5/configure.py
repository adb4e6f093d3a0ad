# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of mlx5_port from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from .._idle import io as idle_io
from .._idle import plan as idle_plan
from .._revert import io as revert_io
from . import idle, info_io, io, plan, revert
from .info import NodeClass
from .model import Node, Request, Step


@dataclass(frozen=True)
class Doing:
    """What of the request is done now: ``left`` of it, by these steps; and what waits for whom."""

    left: Request
    steps: t.Sequence[Step]
    deferred: t.Sequence[dict[str, t.Any]] = ()
    users_known: bool | None = None


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
        "ports": plan.details(request, after or before),
        "excluded": plan.excluded(request, after or before),
        "diff": {"before": {entry["pci"]: entry for entry in old}, "after": {entry["pci"]: entry for entry in new}},
    }


def _hold_back(machine: Machine, request: Request, node: Node, steps: list[Step]) -> Doing:
    """The plan without what would disturb somebody."""
    ports = idle.ports(request, node, steps)
    decision = idle_plan.decide(request.disruption_policy, ports,
                                lambda: idle_io.gather(machine, [port.pci for port in ports]))
    if not decision.busy:
        return Doing(request, steps, (), decision.known)
    left = idle.reduced(request, node, decision.busy)
    kept = plan.plan(left, node)
    return Doing(left, kept, idle.deferred(ports, decision, steps, kept), decision.known)


def _plan(machine: Machine, request: Request) -> tuple[Node, Doing]:
    node = io.gather(machine, request)
    problems = plan.check(request, node)
    steps = [] if problems else plan.plan(request, node)
    if not problems and not steps:
        # Nothing to do is a claim too: it must hold.
        problems = plan.verify(request, node)
    if problems:
        raise AidcError(problems)
    return node, _hold_back(machine, request, node, steps)


def _run(machine: Machine, request: Request, check_mode: bool) -> tuple[dict[str, t.Any], Node]:
    """The result, and the node as it is now."""
    if check_mode:
        revert_io.left_behind(machine, revert_io.call_of("mlx5_port", request), check_mode)
        node, doing = _plan(machine, request)
        return _result(request, node, doing, None), node
    with host_lock(machine, "mlx5_port"):
        call = revert_io.call_of("mlx5_port", request)
        before = revert_io.left_behind(machine, call, check_mode)
        node, doing = _plan(machine, request)
        if not doing.steps:
            return {**_result(request, node, doing, node), "armed": revert_io.public(before)}, node
        with revert_io.guarded(machine, call, revert.undo(doing.left, node, doing.steps)) as armed:
            io.apply(machine, doing.steps)
            after = io.gather(machine, request)
            problems = plan.verify(doing.left, after)
            if problems:
                raise AidcError(problems, [step.command for step in doing.steps])
            return {**_result(request, node, doing, after), "armed": revert_io.public(armed or before)}, after


def configure(
    machine: Machine, request: Request, check_mode: bool, info_class: NodeClass | None = None,
) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way. With a class the result has what mlx5_info returns, too."""
    result, node = _run(machine, request, check_mode)
    if info_class is not None:
        result["info"] = info_io.complete(machine, node, [want.pci for want in request.ports], info_class)
    return result
