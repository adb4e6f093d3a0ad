# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of fabric_boot from beginning to end: read, check, plan, apply, read back, ask the tool."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from . import io, plan
from .model import Node, Request, Step


def _shown(state: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"enabled": state["enabled"], **state["files"]}


def _result(machine: Machine, request: Request, node: Node, steps: t.Sequence[Step],
            after: Node | None) -> dict[str, t.Any]:
    old = plan.state(node)
    new = plan.predict(request) if after is None else plan.state(after)
    drift, why = io.drift(machine, request) if request.check_drift and request.state == "present" else (None, "")
    return {
        "changed": bool(steps), "before": old, "after": new,
        "commands": [list(step.command) for step in steps],
        "steps": [step.as_dict() for step in steps],
        "enabled": plan.state(after or node)["enabled"],
        "drift": drift, "drift_why": why or None,
        **io.times(machine),
        "diff": {"before": _shown(old), "after": _shown(new)},
    }


def _plan(machine: Machine, request: Request) -> tuple[Node, list[Step]]:
    node = io.gather(machine)
    problems = plan.check(request, node)
    if problems:
        raise AidcError(problems)
    return node, plan.plan(request, node)


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way.

    Where the tool must be written and its bytes did not come along, the result is only ``needs_source``.
    """
    if check_mode:
        node, steps = _plan(machine, request)
        return _result(machine, request, node, steps, None)
    with host_lock(machine, "fabric_boot"):
        node, steps = _plan(machine, request)
        if plan.needs_source(request, node) and not request.source:
            return {"changed": False, "needs_source": True, "commands": []}
        if steps:
            io.apply(machine, request, steps)
            after = io.gather(machine)
            problems = plan.verify(request, after)
            if problems:
                raise AidcError(problems, [step.command for step in steps])
        else:
            after = node
    return _result(machine, request, node, steps, after)
