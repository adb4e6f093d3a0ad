# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read of a node's rails what no other reader of mlx5_info tells: managers, carrier, ARP, routes, pause, marks."""
from __future__ import annotations

import dataclasses
import typing as t

from .._gid.io import configfs_mode
from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._mlx5 import info_io
from .._mlx5.info import NodeClass
from .._networkd import io as networkd_io
from .._rail import detect, parse
from .._rail.io import Once, read_owners, read_sysctls
from .._rail.model import Node, Present
from .._rail.sysctl import effective
from .._roce import files as roce_files
from .._roce import parse as roce_parse
from .._roce.io import BLUEFIELD, dpu_mode
from . import model

Data = dict[str, t.Any]
_CONFS = ("/etc/NetworkManager/conf.d", "/run/NetworkManager/conf.d", "/usr/lib/NetworkManager/conf.d")
_MARKS = {"cm_tos": 0, "traffic_class": 0}


def _text(machine: Machine, path: str) -> str | None:
    """None also where this user may not read: the audit then does not know."""
    try:
        return read_text(machine.path(path))
    except OSError:
        return None


def _confs(machine: Machine) -> dict[str, str]:
    paths = ["/etc/NetworkManager/NetworkManager.conf"]
    for folder in _CONFS:
        real = machine.path(folder)
        paths += [f"{folder}/{path.name}" for path in sorted(real.glob("*.conf"))] if real.is_dir() else []
    found = {path: _text(machine, path) for path in paths}
    return {path: text for path, text in found.items() if text is not None}


def _pause(machine: Machine, netdev: str) -> str | None:
    result = machine.tool("ethtool", "-a", netdev)
    try:
        on = roce_parse.pause(result.stdout) if result.state == "ok" else ""
    except ValueError:
        on = ""
    return None if on == "" else f"{on} on" if on else "off"


def _dpu(machine: Machine, device: t.Mapping[str, t.Any]) -> bool | None:
    if device["pci_id"] not in BLUEFIELD or device["is_vf"]:
        return None
    problem: Problem | None = dpu_mode(machine, device["pci"])
    if problem is None:
        return False
    return True if "DPU mode" in problem.got else None


def _port(machine: Machine, device: t.Mapping[str, t.Any]) -> Data:
    """What the kernel's files and ethtool say of one rail."""
    port = device["ports"][0] if device["ports"] else {}
    netdev, rdma = port.get("netdev"), device["rdma_device"]
    found: Data = {"dpu_mode": _dpu(machine, device), "global_pause": None, "rdma_cm": None, "traffic_class": None}
    if not netdev or device["is_vf"] or port.get("link_layer") != "Ethernet":
        return found
    marks = roce_files.read(machine, device["pci"], netdev, rdma, _MARKS).state
    mode = configfs_mode(machine, rdma, 1).value if rdma and machine.path(roce_files.CONFIGFS).exists() else None
    return {**found, "global_pause": _pause(machine, netdev), "traffic_class": marks.get("traffic_class"),
            "rdma_cm": {"tos": marks.get("cm_tos"), "roce_mode": mode}}


def _owners(machine: Machine, netdevs: list[str]) -> Node:
    """Managers of these ports, with the files in which they have saved them."""
    node, _problems = read_owners(machine)
    node = dataclasses.replace(node, networkd=networkd_io.gather(machine, netdevs))
    texts = {path: _text(machine, path) for path in model.wanted_files(node, netdevs)}
    return dataclasses.replace(node, files={path: Present(text, 0) for path, text in texts.items() if text is not None})


def _netdevs(machine: Machine, netdevs: list[str]) -> dict[str, Data]:
    links = machine.tool("ip", "-d", "-j", "addr", "show")
    try:
        running = parse.addresses(links.stdout) if links.state == "ok" else {}
    except ValueError:
        running = {}
    node, confs, every = _owners(machine, netdevs), _confs(machine), read_sysctls(machine, "all")
    found = {}
    for name in netdevs:
        owners = detect.claims(node, name)
        addresses = [one.text for one in running[name].addresses] if name in running else None
        found[name] = {"addresses": addresses, "owners": owners, "volatile": model.volatile(node, name, owners),
                       "saved": model.saved(node, name, owners, confs),
                       "sysctls": effective(read_sysctls(machine, name), every)}
    return found


def _routing(machine: Machine) -> tuple[list[str] | None, dict[str, list[str]]]:
    """Rules, and by netdev the routes of tables with a number; None where they cannot be had."""
    rules: list[str] = []
    routes: dict[str, list[str]] = {}
    for version in (4, 6):
        asked = machine.tool("ip", "-j", f"-{version}", "rule", "show")
        shown = machine.tool("ip", "-j", f"-{version}", "route", "show", "table", "all")
        if "ok" not in (asked.state, shown.state):
            return None, {}
        try:
            rules += parse.rules(asked.stdout)[0]
            for netdev, text in parse.routes(shown.stdout, version):
                routes.setdefault(netdev, []).append(text)
        except ValueError:
            return None, {}
    return rules, routes


def _services(machine: Machine) -> Data:
    lldpad = machine.tool("systemctl", "is-active", "lldpad.service")
    unit = machine.tool("systemctl", "is-enabled", model.UNIT)
    # Both exit non-zero and say the word; an old systemctl says nothing of a unit that is not there.
    answers = [None if one.state in ("missing", "timeout") else (one.stdout.split() or [""])[0]
               for one in (lldpad, unit)]
    return {"lldpad": None if answers[0] is None else answers[0] in ("active", "activating", "reloading"),
            "boot_unit": None if answers[1] is None else answers[1] or "not-found",
            "intent": model.intent(_text(machine, model.INTENT))}


def read(machine: Machine, rails: t.Sequence[str], wanted: NodeClass) -> Data:
    """What mlx5_info returns with ``fabric: true``; without rails all functions with an Ethernet port are looked at."""
    machine = dataclasses.replace(machine, run=Once(machine.run))
    data = info_io.read(machine, rails, wanted)
    chosen = [device for device in data["devices"] if device["pci"] in rails or not rails]
    netdevs = [port["netdev"] for device in chosen for port in device["ports"] if port["netdev"]]
    rules, routes = _routing(machine)
    return {**data, "fabric": {
        "ports": {device["pci"]: _port(machine, device) for device in chosen},
        "netdevs": _netdevs(machine, netdevs), "rules": rules,
        "routes": {name: routes[name] for name in netdevs if name in routes}, **_services(machine)}}
