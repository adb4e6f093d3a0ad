# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Keep rails as they were set up, without their files: what is no manager's is set again, the rest is told."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError
from .._host.lock import host_lock
from .._host.machine import Machine
from . import check, io, plan
from .apply import Applying
from .model import Node, Request


def _as_set(request: Request, node: Node) -> Node:
    """The node as it is when our steps have run."""
    ports = {want.pci: dataclasses.replace(port, sysctls={**port.sysctls, **request.sysctls_of(want)})
             for want in request.rails for port in [node.ports[want.pci]]}
    return dataclasses.replace(node, ports=ports)


def keep(machine: Machine, request: Request, check_mode: bool) -> dict[str, t.Any]:
    """Sets the sysctls, which a manager of the network does not [host-setup 1.2: set them again from the boot unit].

    Addresses, MTU, rules and routes are their manager's to give back; what lacks of them is in ``drift``.
    """
    wrong = check.values(request)
    if wrong:
        raise AidcError(wrong)
    node = io.gather(machine, request)
    problems = check.check(request, node)
    if problems:
        raise AidcError(problems)
    steps = plan.running_sysctl_steps(request, node)
    if steps and not check_mode:
        with host_lock(machine, "rail_network"):
            Applying(machine).run(steps, node.pending)
        node = io.gather(machine, request)
    else:
        node = _as_set(request, node)
    return {"steps": [step.as_dict() for step in steps], "drift": plan.verify(request, node)}
