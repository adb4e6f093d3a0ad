# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which ports a plan disturbs, and what is left of a request while some of them are in use. Pure.

A port in use keeps its MTU, running and saved, as a reload of networkd sets the saved one; its other settings are set
where that disturbs nobody.
"""
from __future__ import annotations

import dataclasses
import typing as t

from .._idle import plan as idle_plan
from .._idle.model import Decision
from .._idle.model import Port as IdlePort
from .._networkd.model import RELOAD
from .model import Node, Request, Step, Want
from .plan import must_save
from .tuning import GROUPS

_DISTURBING = {key for group in GROUPS if group.disruptive != "none" for key in group.keys}


def _disturbed(request: Request, node: Node, steps: t.Sequence[Step]) -> list[str]:
    """PCI addresses; a reload is for the ports whose files are new, which is all of them if an earlier run left it."""
    reload = any(step.command == RELOAD for step in steps)
    own = {step.pci for step in steps if step.disruptive != "none"}
    bonds = {port.bond for pci in own if pci and (port := node.port(pci)) and port.bond}

    def is_disturbed(want: Want) -> bool:
        port = node.port(want.pci)
        if want.pci in own or (port is not None and port.bond in bonds):
            return True
        return reload and want.mtu_bytes is not None and (must_save(want, node) or node.networkd.reload_pending)

    return [want.pci for want in request.ports if is_disturbed(want)]


def _devices(request: Request, node: Node, want: Want) -> tuple[str, ...]:
    """RDMA devices of the port's bond, and of the ports that a reload for it is for, too."""
    port = node.port(want.pci)
    saved = must_save(want, node)

    def mate(pci: str) -> bool:
        other = node.port(pci)
        if port is None or other is None:
            return False
        shares = saved and port.network_file is not None and (
            other.network_file == port.network_file or node.networkd.reload_pending)
        return bool(shares or (port.bond is not None and other.bond == port.bond))

    return tuple(device.rdma_device for device in node.devices if device.rdma_device and mate(device.pci))


def ports(request: Request, node: Node, steps: t.Sequence[Step]) -> list[IdlePort]:
    found = []
    disturbed = _disturbed(request, node, steps)
    for want in request.ports:
        port = node.port(want.pci)
        if want.pci in disturbed and port is not None:
            found.append(IdlePort(want.pci, port.netdev, None, _devices(request, node, want)))
    return found


def _left(want: Want, node: Node) -> Want:
    port = node.port(want.pci)
    is_so = port is not None and not must_save(want, node) and want.mtu_bytes in (None, port.mtu_bytes)
    return dataclasses.replace(want, mtu_bytes=want.mtu_bytes if is_so else None, settings={
        key: value for key, value in want.settings.items() if key not in _DISTURBING})


def reduced(request: Request, node: Node, busy: t.Collection[str]) -> Request:
    """What may be done while ``busy`` ports are in use."""
    if not busy:
        return request
    wants = tuple(_left(want, node) if want.pci in busy else want for want in request.ports)
    # A reload that an earlier run left would be for the busy ports too.
    return dataclasses.replace(request, ports=wants, persistent=request.persistent and not node.networkd.reload_pending)


def deferred(ports: t.Sequence[IdlePort], decision: Decision, steps: t.Sequence[Step], left: t.Sequence[Step],
             ) -> list[dict[str, t.Any]]:
    """A step that serves several ports is named where a port has none of its own."""
    kept = [step.command for step in left]
    waiting = [step for step in steps if step.command not in kept]

    def of(pci: str | None) -> list[tuple[str, ...]]:
        return [step.command for step in waiting if step.pci == pci]

    return [idle_plan.entry(port, of(port.pci) or of(None), decision.busy[port.pci])
            for port in ports if port.pci in decision.busy]
