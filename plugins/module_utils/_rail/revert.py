# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What undoes a plan for rails one of which carries the way to the host. Pure."""
from __future__ import annotations

import typing as t

from .._net import plan as net_plan
from .._networkd.model import RELOAD
from .._revert.model import Undo
from . import sysctl
from .model import Node, Request, Step

_FILES = ("write", "remove")


def _told(node: Node, steps: t.Sequence[Step], netdevs: t.Sequence[str]) -> list[tuple[str, ...]]:
    """The owners read their old files."""
    called = [step.command for step in steps if step.command[0] not in (*_FILES, "set")]
    programs = {command[0] for command in called}
    found: list[tuple[str, ...]] = [("netplan", "generate")] if "netplan" in programs else []
    if "networkctl" in programs:
        found += [RELOAD, ("networkctl", "reconfigure", *netdevs)]
    if "nmcli" in programs:
        found += [("nmcli", "general", "reload", "conf"), ("nmcli", "connection", "reload")]
        # A netdev whose profile was no other keeps the one that has its old text again.
        found += [("nmcli", "--wait", "30", "connection", "up", "id", node.manager.devices[netdev][1], "ifname", netdev)
                  for netdev in netdevs if node.manager.devices.get(netdev, ("", ""))[1]]
    return found


def _sysctls(node: Node, steps: t.Sequence[Step]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for step in steps:
        for port in node.ports.values():
            for key, value in port.sysctls.items():
                if step.command[0] == "set" and step.command[1] == sysctl.proc_path(port.netdev or "", key):
                    found.append(("write", step.command[1], str(value)))
    return found


def undo(request: Request, node: Node, steps: t.Sequence[Step]) -> Undo | None:
    """None where no step touches such a rail."""
    touched = list(dict.fromkeys(netdev for step in steps for netdev in step.netdevs))
    rails = [node.netdev(want.pci) for want in request.rails]
    if not net_plan.management(net_plan.uses(node.net)) & set(touched) & set(rails):
        return None
    files = tuple(step.command[1] for step in steps if step.command[0] in _FILES)
    return Undo(files, (*_told(node, steps, touched), *_sysctls(node, steps)), tuple(touched))
