# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read what a node's rails have, from all sources."""
from __future__ import annotations

import dataclasses
import stat
import typing as t

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.runner import Result
from .._host.sysfs import Sysfs
from .._mlx5.sysfs import choose_netdev
from .._net import io as net_io
from .._networkd import io as networkd_io
from .._networkd.model import Networkd
from .._networkd.plan import dropin_path, is_netplan
from . import netplan, networkmanager, parse, sysctl
from .model import PENDING_FILE, SYSCTL_KEYS, NetworkManager, Node, Port, Present, Proof, Request, Running, Want
from .netplan_yaml import ethernets
from .networkd import DROPIN_NAME, own_path

T = t.TypeVar("T")
NM_UNIT = "NetworkManager.service"
INTERFACES = "/etc/network/interfaces"
_HINTS = {
    "nmcli": "install network-manager (Debian, Ubuntu) or NetworkManager (RHEL)",
    "netplan": "install netplan.io, and run netplan generate by hand to see what is wrong",
    "ip": "iproute2 is needed",
    "ifquery": "install ifupdown, or remove /etc/network/interfaces",
}
_ETHERNET = 1


class Once:
    """A runner that asks each question once: one reading of a node is one moment."""

    def __init__(self, run: t.Callable[[t.Sequence[str], float], Result]) -> None:
        self.run = run
        self.known: dict[tuple[str, ...], Result] = {}

    def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        key = tuple(argv)
        if key not in self.known:
            self.known[key] = self.run(argv, timeout_seconds)
        return self.known[key]


def _ask(machine: Machine, argv: tuple[str, ...], parser: t.Callable[[str], T], bad: list[Problem]) -> T | None:
    return machine.tool(*argv).parsed(parser, bad, "its usual output", _HINTS.get(argv[0], ""))


def read_sysctls(machine: Machine, name: str) -> dict[str, int]:
    found = {}
    for key in SYSCTL_KEYS:
        value = (read_text(machine.path(sysctl.proc_path(name, key))) or "").strip()
        if value.isdigit():
            found[key] = int(value)
    return found


def read_port(machine: Machine, sysfs: Sysfs, pci: str) -> Port:
    base = f"bus/pci/devices/{pci}"
    names = sysfs.names(base)
    if not names:
        return Port(pci, present=False)
    rdma = next(iter(sysfs.names(f"{base}/infiniband")), None)
    path = f"class/infiniband/{rdma}/ports/1" if rdma else None
    netdev = choose_netdev(sysfs, tuple(sysfs.names(f"{base}/net")), path, 1)
    if netdev is None:
        return Port(pci, None, rdma, is_vf="physfn" in names)
    return Port(pci, netdev, rdma, is_vf="physfn" in names,
                ethernet=sysfs.number(f"class/net/{netdev}/type") == _ETHERNET,
                sysctls=read_sysctls(machine, netdev), sysctls_all=read_sysctls(machine, "all"))


def _manager(machine: Machine) -> NetworkManager:
    if machine.tool("systemctl", "is-active", NM_UNIT).stdout.strip() != "active":
        return NetworkManager()
    bad: list[Problem] = []
    devices = _ask(machine, ("nmcli", "-t", "-f", "DEVICE,TYPE,STATE,CONNECTION", "device"), parse.devices, bad)
    argv = ("nmcli", "-t", "-f", "NAME,UUID,TYPE,DEVICE,FILENAME", "connection", "show")
    connections = _ask(machine, argv, parse.connections, bad) if not bad else None
    return NetworkManager(True, devices or {}, connections or (), bad[0] if bad else None)


def _definitions(machine: Machine, request: Request, networkd: Networkd, netdevs: list[str],
                 bad: list[Problem]) -> dict[str, t.Any]:
    """netplan's merge of its files, asked where it owns a rail; it exits 0 on a file that it cannot read."""
    links = [networkd.links[name] for name in netdevs if name in networkd.links]
    if request.owner != "netplan" and not any(is_netplan(link.network_file or "") for link in links):
        return {}
    result = machine.tool("netplan", "get")
    if result.state == "ok" and not result.stdout.strip():
        said = result.said() or "nothing"
        bad.append(Problem("netplan get", said, "the merged definitions", _HINTS["netplan"]))
        return {}
    return _ask(machine, ("netplan", "get"), ethernets, bad) or {}


def _files(machine: Machine, request: Request, node: Node) -> dict[str, Present]:
    """What stands where we might write, and the saved profiles in use. OSError where one cannot be read."""
    paths = [netplan.PATH, networkmanager.CONF, sysctl.PATH]
    for want in request.rails:
        paths += [own_path(want.rail), networkmanager.path_of(want.rail)]
        saved = node.networkd.of(node.netdev(want.pci))
        if saved is not None and not is_netplan(saved.network_file):
            paths.append(dropin_path(saved.network_file, DROPIN_NAME))
    paths += [one.path for one in node.manager.connections if one.path.startswith(networkmanager.FOLDER)]
    found = {}
    for path in paths:
        text = read_text(machine.path(path))
        if text is not None:
            found[path] = Present(text, stat.S_IMODE(machine.path(path).stat().st_mode))
    return found


def _routing(machine: Machine, request: Request, node: Node, bad: list[Problem]) -> Node:
    """Rules, routes and the proof, for the families that have a rail with a gateway."""
    texts: list[str] = []
    routes: list[tuple[str, str]] = []
    priorities: tuple[int, ...] = ()
    for version in sorted({want.version for want in request.rails if want.gateway}):
        family = f"-{version}"
        rules = _ask(machine, ("ip", "-j", family, "rule", "show"), parse.rules, bad)
        if rules:
            texts += rules[0]
            # IPv6 has no rule 32767.
            priorities = priorities or (rules[1] if version == 4 else ())
        argv = ("ip", "-j", family, "route", "show", "table", "all")

        def own(text: str, version: int = version) -> tuple[tuple[str, str], ...]:
            return parse.routes(text, version)

        routes += _ask(machine, argv, own, bad) or ()
    proofs = {want.pci: _prove(machine, want, node) for want in request.rails if want.gateway and node.netdev(want.pci)}
    return dataclasses.replace(node, rules=tuple(texts), rule_priorities=priorities, routes=tuple(routes),
                               proofs=proofs)


def _prove(machine: Machine, want: Want, node: Node) -> Proof:
    argv = ("ip", "-j", "route", "get", want.peer, "from", want.ip, "oif", node.netdev(want.pci))
    result = machine.tool(*argv)
    if result.state != "ok":
        return Proof(None, None, result.why())
    try:
        return parse.route_get(result.stdout)
    except ValueError as error:
        return Proof(None, None, result.unreadable(error))


def _ifupdown(machine: Machine, bad: list[Problem]) -> tuple[str, ...]:
    if not machine.path(INTERFACES).exists():
        return ()
    return _ask(machine, ("ifquery", "--list", "--all"), lambda text: tuple(text.split()), bad) or ()


def gather(machine: Machine, request: Request) -> Node:
    """One read of everything. What cannot be read is in the node's problems."""
    machine = dataclasses.replace(machine, run=Once(machine.run))
    sysfs = Sysfs(machine.path("/sys"))
    bad: list[Problem] = []
    ports = {want.pci: read_port(machine, sysfs, want.pci) for want in request.rails}
    netdevs = [port.netdev for port in ports.values() if port.netdev]
    net = net_io.gather(machine)
    bad += net.problems
    none: dict[str, Running] = {}
    running = none if net.problems else _ask(machine, ("ip", "-d", "-j", "addr", "show"), parse.addresses, bad) or none
    networkd, manager = networkd_io.gather(machine, netdevs), _manager(machine)
    bad += [problem for problem in (networkd.problem, manager.problem) if problem]
    bad += [Problem(f"/sys/{path}", error, "a readable file", "the device or what emulates it is in trouble")
            for path, error in sysfs.errors.items()]
    node = Node(ports, net, running, networkd, manager, has_netplan=machine.path("/etc/netplan").is_dir(),
                ifupdown=_ifupdown(machine, bad), pending=machine.path(PENDING_FILE).exists())
    node = dataclasses.replace(node, netplan=_definitions(machine, request, networkd, netdevs, bad))
    node = _routing(machine, request, node, bad)
    try:
        node = dataclasses.replace(node, files=_files(machine, request, node))
    except OSError as error:
        bad.append(Problem(str(error.filename), error.strerror or str(error), "a readable file", "run as root"))
    return dataclasses.replace(node, problems=tuple(bad))


def read_owners(machine: Machine) -> tuple[Node, list[Problem]]:
    """Only what tells who owns a port, for all ports; see detect.claim."""
    bad: list[Problem] = []
    networkd, manager = networkd_io.gather(machine, []), _manager(machine)
    # A saved MTU that only root may read says nothing of an owner.
    bad += [problem for problem in (networkd.problem, manager.problem) if problem and not networkd.unreadable]
    return Node(networkd=networkd, manager=manager, ifupdown=_ifupdown(machine, bad)), bad
