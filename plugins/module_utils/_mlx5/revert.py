# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What undoes a plan for ports one of which carries the way to the host. Pure."""
from __future__ import annotations

import typing as t

from .._net import plan as net_plan
from .._networkd.model import RELOAD
from .._revert.model import Undo
from . import tuning
from .model import Node, Request, Step


def _netdevs(request: Request, node: Node) -> list[str]:
    """A bond before its members, and all before their VLANs."""
    found: list[str] = []
    for want in request.ports:
        port = node.port(want.pci)
        if port is not None:
            found += [name for name in (port.bond, port.netdev, *(vlan.name for vlan in port.vlans)) if name]
    return found


def _settings(request: Request, node: Node) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for want in request.ports:
        port, have = node.port(want.pci), node.settings.get(want.pci, tuning.Have())
        old = {key: have.values[key] for key, value in want.settings.items()
               if key in have.values and have.values[key] != value}
        if port is not None and port.netdev:
            # Nothing is known of what is there then, so that each of them is written.
            found += [command for command, _disturbs, _why in tuning.plan(want.pci, port.netdev, old, tuning.Have())]
    return found


def undo(request: Request, node: Node, steps: t.Sequence[Step]) -> Undo | None:
    """None where no step touches such a port. A step without a port, as a reload, may touch each."""
    touched = {step.pci for step in steps}
    if not any(want.pci in touched or None in touched for want in request.ports
               if (port := node.port(want.pci)) and net_plan.management({"": port.excluded or ""})):
        return None
    reload = [RELOAD] if any(step.command == RELOAD for step in steps) else []
    files = tuple(step.command[1] for step in steps if step.command[0] in ("write", "remove"))
    return Undo(files, (*reload, *_settings(request, node)), tuple(dict.fromkeys(_netdevs(request, node))))
