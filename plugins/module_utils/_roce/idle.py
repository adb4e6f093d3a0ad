# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which ports a plan disturbs, and what is left of a request while some of them are in use. Pure.

What decides the class of a packet and what the class gets is one: with PFC or trust of a port waiting, its DSCP map,
ETS, buffers, ToS and traffic class wait too. Without that a job would find its packets in a class that is not lossless
yet. The owner of DCBX, ECN and the class of CNPs are set.
"""
from __future__ import annotations

import dataclasses
import typing as t

from .._idle import plan as idle_plan
from .._idle.model import Decision
from .._idle.model import Port as IdlePort
from .model import NEGOTIATED, SHARED_GROUPS, Node, Request, Step

TOGETHER = frozenset((*NEGOTIATED, *SHARED_GROUPS))


def ports(request: Request, node: Node, steps: t.Sequence[Step]) -> list[IdlePort]:
    disturbed = {step.pci for step in steps if step.disruptive != "none"}
    return [IdlePort(port.pci, port.netdev, None, (port.rdma_device,) if port.rdma_device else ())
            for want in request.wants if want.pci in disturbed for port in [node.ports[want.pci]]]


def reduced(request: Request, busy: t.Collection[str]) -> Request:
    """What may be done while ``busy`` ports are in use."""
    wants = tuple(dataclasses.replace(
        want, state={group: value for group, value in want.state.items() if group not in TOGETHER},
        required=want.required - TOGETHER) if want.pci in busy else want for want in request.wants)
    return dataclasses.replace(request, wants=wants) if busy else request


def deferred(ports: t.Sequence[IdlePort], decision: Decision, steps: t.Sequence[Step], left: t.Sequence[Step],
             ) -> list[dict[str, t.Any]]:
    kept = [step.command for step in left]
    return [idle_plan.entry(port, [step.command for step in steps if step.pci == port.pci and step.command not in kept],
                            decision.busy[port.pci]) for port in ports if port.pci in decision.busy]
