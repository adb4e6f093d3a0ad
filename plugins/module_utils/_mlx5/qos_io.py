# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Runtime QoS of the ports for mlx5_info, read with the tools of roce_qos."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from .._roce import factory
from .._roce.backend import Backend
from .._roce.model import DCBNL_GROUPS
from .model import Device

Answer = tuple[t.Optional[dict[str, t.Any]], t.Optional[str]]


def _text(problems: t.Sequence[Problem]) -> str:
    return "; ".join(problem.text() for problem in problems)


def _ask(machine: Machine, backend: Backend, netdevs: t.Sequence[str]) -> dict[str, Answer]:
    """One question for all. A port without dcbnl spoils the answer of all, and then each is asked for itself."""
    states, problems = backend.read(machine, netdevs, set(DCBNL_GROUPS))
    if len(netdevs) > 1 and any("dcbnl" in problem.hint for problem in problems):
        return {netdev: answer for one in netdevs for netdev, answer in _ask(machine, backend, [one]).items()}
    why = _text(problems) or None
    return {netdev: ({"backend": backend.name, **states[netdev]}, why) if netdev in states else (None, why)
            for netdev in netdevs}


def _port(device: Device) -> str | None:
    """The netdev of a port that has a QoS of its own."""
    port = device.ports[0] if device.ports else None
    return port.netdev if port is not None and not device.is_vf and port.link_layer == "Ethernet" else None


def read(machine: Machine, devices: t.Sequence[Device]) -> dict[str, Answer]:
    """By PCI address: the groups of roce_qos as they run, and why they are not known."""
    found: dict[str, Answer] = {device.pci: (None, "a virtual function, or no Ethernet port with a netdev")
                                for device in devices}
    ports = {device.pci: netdev for device in devices if (netdev := _port(device)) is not None}
    if not ports:
        return found
    netdevs = list(ports.values())
    try:
        answers = _ask(machine, factory.choose(machine, "auto", netdevs), netdevs)
    except AidcError as error:
        answers = dict.fromkeys(netdevs, (None, _text(error.problems)))
    return {**found, **{pci: answers[netdev] for pci, netdev in ports.items()}}
