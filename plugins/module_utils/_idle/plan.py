# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Who would be disturbed by a step, in words, and what the policy makes of it. Pure."""
from __future__ import annotations

import typing as t

from .model import SERVICES, Decision, Holder, Policy, Port, Process, Usage


def _of_process(process: Process, connected: t.Collection[str]) -> list[Holder]:
    """A step of Slurm and a process with a GPU use the whole node: they may open any device next."""
    if process.comm in SERVICES and not process.is_step:
        return []
    found = [Holder(process.text(), f"{'has connections on' if device in connected else 'holds'} {device}", device)
             for device in process.devices]
    if process.is_step:
        found.append(Holder(process.text(), "runs on this node"))
    elif process.has_gpu:
        found.append(Holder(process.text(), "holds a GPU"))
    return found


def holders(usage: Usage) -> list[Holder]:
    """Everybody, by what they use."""
    pairs = usage.queue_pairs or ()
    seen = {process.pid for process in usage.processes}
    found = []
    for process in usage.processes:
        found += _of_process(process, {pair.device for pair in pairs if pair.pid == process.pid})
    for pair in pairs:
        if pair.pid not in seen:
            who = f"pid {pair.pid} {pair.comm}" if pair.pid is not None else f"the kernel's {pair.comm.strip('[]')}"
            found.append(Holder(who, f"has connections on {pair.device}", pair.device))
    return found + [Holder("mount", f"{mount.what} uses RDMA", netdev=mount.netdev) for mount in usage.mounts]


def _concerns(holder: Holder, port: Port, devices: t.Collection[str]) -> bool:
    if holder.device is not None:
        return holder.device in devices
    return holder.netdev is None or holder.netdev == port.netdev


def of_port(usage: Usage, port: Port) -> tuple[str, ...]:
    """Holders of the port: of its devices first, then those of the whole node that hold none of them."""
    devices = {*usage.devices.get(port.pci, ()), *port.devices}
    mine = [holder for holder in holders(usage) if _concerns(holder, port, devices)]
    own = [holder for holder in mine if holder.device is not None]
    named = {holder.who for holder in own}
    others = [holder for holder in mine if holder.device is None and holder.who not in named]
    return tuple(dict.fromkeys(holder.text() for holder in (*own, *others)))


def decide(policy: Policy, ports: t.Sequence[Port], read: t.Callable[[], Usage]) -> Decision:
    """``ports`` are those that a step would disturb. Nobody is asked without need."""
    if not ports:
        return Decision()
    if policy == "never":
        return Decision({port.pci: ("disruption_policy is never",) for port in ports})
    usage = read()
    if policy == "force":
        return Decision({}, usage.known)
    found = {port.pci: of_port(usage, port) for port in ports}
    return Decision({pci: texts for pci, texts in found.items() if texts}, usage.known)


def entry(port: Port, commands: t.Iterable[t.Sequence[str]], texts: t.Iterable[str]) -> dict[str, t.Any]:
    """One item of a module's result ``deferred``."""
    rail = {} if port.rail is None else {"rail": port.rail}
    return {**rail, "pci": port.pci, "netdev": port.netdev, "steps": [list(command) for command in commands],
            "holders": list(texts)}
