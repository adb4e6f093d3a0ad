# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of mlx5_port from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from . import info_io, io, plan
from .info import NodeClass
from .model import Node, Request, Step


def _result(request: Request, before: Node, steps: list[Step], after: Node | None) -> dict[str, t.Any]:
    """What the module returns; without ``after`` (check mode) the values that the steps will give."""
    old = plan.state(request, before)
    new = plan.predict(request, before) if after is None else plan.state(request, after)
    return {
        "changed": bool(steps),
        "before": old,
        "after": new,
        "commands": [list(step.command) for step in steps],
        "steps": [step.as_dict() for step in steps],
        "ports": plan.details(request, after or before),
        "excluded": plan.excluded(request, after or before),
        "diff": {"before": {entry["pci"]: entry for entry in old}, "after": {entry["pci"]: entry for entry in new}},
    }


def _plan(machine: Machine, request: Request) -> tuple[Node, list[Step]]:
    node = io.gather(machine, request)
    problems = plan.check(request, node)
    steps = [] if problems else plan.plan(request, node)
    if not problems and not steps:
        # Nothing to do is a claim too: it must hold.
        problems = plan.verify(request, node)
    if problems:
        raise AidcError(problems)
    return node, steps


def _run(machine: Machine, request: Request, check_mode: bool) -> tuple[dict[str, t.Any], Node]:
    """The result, and the node as it is now."""
    if check_mode:
        node, steps = _plan(machine, request)
        return _result(request, node, steps, None), node
    with host_lock(machine, "mlx5_port"):
        node, steps = _plan(machine, request)
        if not steps:
            return _result(request, node, steps, node), node
        io.apply(machine, steps)
        after = io.gather(machine, request)
        problems = plan.verify(request, after)
        if problems:
            raise AidcError(problems, [step.command for step in steps])
        return _result(request, node, steps, after), after


def configure(
    machine: Machine, request: Request, check_mode: bool, info_class: NodeClass | None = None,
) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way. With a class the result has what mlx5_info returns, too."""
    result, node = _run(machine, request, check_mode)
    if info_class is not None:
        result["info"] = info_io.complete(machine, node, [want.pci for want in request.ports], info_class)
    return result
