# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of mlx5_nvconfig from beginning to end: read, check, plan, apply, read back."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from . import io, plan
from .model import Node, Request, Step


def _plan(machine: Machine, request: Request) -> tuple[Node, list[Step]]:
    """Everything that can be wrong is found here, before the first write."""
    problems = plan.check_request(request) or io.check_functions(machine, request)
    if problems:
        raise AidcError(problems)
    node = io.gather(machine, request)
    problems = plan.check(request, node)
    if problems:
        raise AidcError(problems)
    written = plan.written(request, node)
    waiting = [want.pci for want in request.devices if plan.pending(want, node, written)]
    return io.ask_resets(machine, node, waiting), plan.plan(request, node)


def _result(request: Request, before: Node, steps: list[Step], after: Node | None) -> dict[str, t.Any]:
    """What the module returns; without ``after`` (check mode) what the steps will give."""
    old, new = plan.state(request, before), plan.state(request, after or before, after=after is None)
    devices = plan.details(request, after or before, plan.written(request, before), predict=after is None)
    return {
        "changed": bool(steps),
        "before": old,
        "after": new,
        "commands": [list(step.command) for step in steps],
        "steps": [step.as_dict() for step in steps],
        "devices": devices,
        "pending": plan.summary(devices),
        **{key: any(device[key] for device in devices)
           for key in ("reset_required", "reboot_required", "power_cycle_required")},
        "diff": {"before": {entry["pci"]: entry["parameters"] for entry in old},
                 "after": {entry["pci"]: entry["parameters"] for entry in new}},
    }


def configure(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError for whatever stands in the way."""
    if check_mode:
        node, steps = _plan(machine, request)
        return _result(request, node, steps, None)
    with host_lock(machine, "mlx5_nvconfig"):
        node, steps = _plan(machine, request)
        if not steps:
            return _result(request, node, steps, node)
        power_cycle = io.apply(machine, request, node, steps)
        commands = [step.command for step in steps]
        try:
            after = io.read_again(machine, request, node)
        except AidcError as error:
            raise AidcError(error.problems, commands) from error
        problems = plan.verify(request, after)
        if problems:
            raise AidcError(problems, commands)
        return _result(request, node, steps, dataclasses.replace(after, power_cycle=power_cycle))
