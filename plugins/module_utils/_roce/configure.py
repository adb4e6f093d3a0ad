# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of roce_qos from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from .._net import io as net_io
from .._net import plan as net_plan
from . import factory, io, plan
from .backend import Backend
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
        "backend": before.backend,
        "unsupported": plan.unsupported(request, before),
        "findings": plan.findings(request, after or before),
        "diff": {"before": {entry["pci"]: entry for entry in old}, "after": {entry["pci"]: entry for entry in new}},
    }


def _check_uses(machine: Machine, node: Node, steps: list[Step]) -> None:
    """What the ports carry is asked only if a link is to stop."""
    if not any(step.disruptive == "link" for step in steps):
        return
    net = net_io.gather(machine)
    problems = [*net.problems, *plan.check_uses(steps, node, net_plan.uses(net))]
    if problems:
        raise AidcError(problems)


def _plan(machine: Machine, request: Request) -> tuple[Node, list[Step], Backend]:
    ports = io.find_ports(machine, request)
    if ports.problems:
        raise AidcError(ports.problems)
    backend = factory.choose(machine, request.backend, [port.netdev for port in ports.ports.values()])
    node = io.gather(machine, request, ports, backend)
    problems = plan.check(request, node, backend)
    if problems:
        raise AidcError(problems)
    steps = plan.plan(request, node, backend)
    _check_uses(machine, node, steps)
    return node, steps, backend


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    if check_mode:
        node, steps, _backend = _plan(machine, request)
        return _result(request, node, steps, None)
    with host_lock(machine, "roce_qos"):
        node, steps, backend = _plan(machine, request)
        if not steps:
            return _result(request, node, steps, node)
        io.apply(machine, steps)
        after = io.gather(machine, request, node, backend)
        problems = plan.verify(request, after)
        if problems:
            raise AidcError(problems, [step.command for step in steps])
        return _result(request, node, steps, after)
