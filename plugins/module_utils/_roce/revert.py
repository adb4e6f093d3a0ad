# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What undoes a plan for ports one of which carries the way to the host: the plan back to the old values. Pure."""
from __future__ import annotations

import dataclasses
import typing as t

from .._revert.model import Undo
from . import plan
from .backend import Backend
from .model import Node, Request, Step, Want


def _backwards(request: Request, node: Node, backend: Backend) -> tuple[Request, Node]:
    wants, ports = [], dict(node.ports)
    for want in request.wants:
        port = node.ports[want.pci]
        groups = plan.differing(want, port)
        after = {**port.state, **{group: want.state[group] for group in groups}}
        after.pop("dscp_missing", None)
        ports[want.pci] = dataclasses.replace(port, state=after)
        old = {group: port.state[group] for group in groups if port.state.get(group) is not None
               and not backend.cannot(group, port.state[group])}
        wants.append(Want(want.pci, old, lossless=want.lossless))
    return dataclasses.replace(request, wants=tuple(wants), take_over=False), dataclasses.replace(
        node, ports=ports, lldpad=False)


def undo(request: Request, node: Node, steps: t.Sequence[Step], management: t.Collection[str], backend: Backend,
         ) -> Undo | None:
    """None where no step stops the link of such a port."""
    stopped = {step.pci for step in steps if step.disruptive != "none"}
    netdevs = [port.netdev for pci, port in node.ports.items() if pci in stopped and port.netdev in management]
    if not netdevs:
        return None
    old_request, old_node = _backwards(request, node, backend)
    commands = [step.command for step in plan.plan(old_request, old_node, backend)]
    stops = ("systemctl", "disable", "--now", plan.LLDPAD)
    started = [("systemctl", "enable", "--now", plan.LLDPAD)] if any(step.command == stops for step in steps) else []
    return Undo((), (*commands, *started), tuple(netdevs))
