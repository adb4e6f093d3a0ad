# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Ask a host's tools: network, time, names, NVLink, drivers. A tool that is missing is a word, not a failure."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.runner import Result
from .._host.sysfs import Sysfs
from .._mlx5.info_io import loaded_stack
from .._rail import detect
from .._rail.io import Once, read_owners
from .._rail.model import Node
from .._rail.parse import addresses as parse_addresses
from . import model, parse

T = t.TypeVar("T")
_NVIDIA_PROC = "/proc/driver/nvidia/version"
_LOOPBACK = "lo"


@dataclasses.dataclass
class Notes:
    """What one reading says beside its values: why something is null, what failed, what only root sees."""

    why: dict[str, str] = dataclasses.field(default_factory=dict)
    problems: list[Problem] = dataclasses.field(default_factory=list)
    needs_root: list[str] = dataclasses.field(default_factory=list)
    is_root: bool = True

    def trouble(self, name: str, problem: Problem, missing: bool = False) -> None:
        """``missing``: the program is not there, which is a state of the host and no problem."""
        self.why[name] = f"{problem.object}: {problem.got}"
        if not missing:
            self.problems.append(problem)


def ask(machine: Machine, notes: Notes, name: str, argv: tuple[str, ...], parser: t.Callable[[str], T],
        root_only: bool = False) -> T | None:
    """The parsed answer; None with a word in ``notes`` where there is none."""
    return take(machine.tool(*argv), notes, name, argv, parser, root_only)


def take(result: Result, notes: Notes, name: str, argv: tuple[str, ...], parser: t.Callable[[str], T],
         root_only: bool = False) -> T | None:
    """As ``ask``, for a tool that has answered."""
    wanted = "its usual output"
    if result.state == "ok":
        try:
            return parser(result.stdout)
        except ValueError as error:
            notes.trouble(name, Problem(" ".join(argv), result.unreadable(error), wanted, "run it by hand"))
            return None
    if root_only and not notes.is_root and result.state == "failed":
        notes.needs_root.append(name)
        notes.why[name] = f"{argv[0]}: {result.why()}; it may need root"
        return None
    notes.trouble(name, Problem(" ".join(argv), result.why(), wanted, "run it by hand"), result.state == "missing")
    return None


def clock(machine: Machine, notes: Notes) -> model.TimeState:
    """chrony's answer has the offset; without a running chronyd systemd asks the kernel."""
    result = machine.tool("chronyc", "-c", "tracking")
    got = result.why() if result.state == "timeout" else None
    if result.state == "ok":
        try:
            return parse.chrony(result.stdout)
        except ValueError as error:
            got = result.unreadable(error)
    # "failed" is no daemon: text on stdout and exit status 1.
    if got is not None:
        notes.trouble("time", Problem("chronyc -c tracking", got, "14 fields", "run it by hand"))
    argv = ("timedatectl", "show", "-p", "NTPSynchronized")
    return ask(machine, notes, "time", argv, parse.timedatectl) or model.TimeState()


def names(machine: Machine, notes: Notes, hostname: str) -> dict[str, t.Any]:
    """The host's own name forwards, and its addresses back. getent exits 2 where there is no such name."""
    found: dict[str, t.Any] = {"addresses": None, "fqdn": None, "reverse": None}
    argv = ("getent", "ahosts", hostname)
    result = machine.tool(*argv)
    if result.state == "failed" and result.rc == 2:
        notes.why["names"] = f"{hostname} is unknown to the name services"
        return {**found, "addresses": []}
    answer = take(result, notes, "names", argv, parse.ahosts)
    if answer is None:
        return found
    forwards, canonical = answer
    back = machine.tool("getent", "hosts", *forwards)
    if back.state in ("missing", "timeout"):
        problem = Problem("getent hosts", back.why(), "the names of the addresses", "look at the resolver")
        notes.trouble("reverse", problem, back.state == "missing")
        return {"addresses": forwards, "fqdn": canonical, "reverse": None}
    # Exit status 2: one of them has no name; the others are printed all the same.
    known = parse.hosts(back.stdout)
    return {"addresses": forwards, "fqdn": canonical, "reverse": {one: known.get(one, []) for one in forwards}}


def nvlink(machine: Machine, notes: Notes, has_gpu: bool) -> dict[str, t.Any] | None:
    if not has_gpu:
        notes.why["nvlink_domain"] = "no NVIDIA GPU on the PCI bus"
        return None
    fabrics = ask(machine, notes, "nvlink_domain", ("nvidia-smi", "-q"), parse.fabrics)
    if fabrics is None:
        return None
    domain, why = model.nvlink_domain(fabrics)
    if why:
        notes.why["nvlink_domain"] = why
    return domain


def nvidia_driver(machine: Machine, notes: Notes) -> dict[str, t.Any] | None:
    """The loaded driver; its file in /proc also says which of the two module flavours it is."""
    text = read_text(machine.path(_NVIDIA_PROC))
    if text is not None:
        try:
            return parse.nvidia_version(text)
        except ValueError as error:
            notes.trouble("nvidia", Problem(_NVIDIA_PROC, str(error), "a line NVRM version", "another driver's file?"))
    version = Sysfs(machine.path("/sys")).read("module/nvidia/version").or_none()
    if version is None:
        notes.why.setdefault("nvidia", "the module nvidia is not loaded")
        return None
    return {"version": version, "flavour": None}


def drivers(machine: Machine, notes: Notes, bound: bool) -> tuple[dict[str, t.Any], list[Problem]]:
    """``bound``: mlx5_core has a function."""
    stack = loaded_stack(machine, bound)
    return {"nvidia": nvidia_driver(machine, notes), "mlx5": stack.as_data()}, list(stack.findings)


def _owner(node: Node, netdev: str) -> tuple[dict[str, t.Any], Problem | None]:
    claim = detect.claim(node, netdev)
    why = f"{claim.problem.got}; wanted {claim.problem.wanted}" if claim.problem else None
    return {"owner": claim.owner, "why": why}, claim.problem


def network(machine: Machine, notes: Notes) -> tuple[dict[str, t.Any], list[model.Route], list[Problem]]:
    """Per netdev its addresses and owner; default routes of the main table; ports that two managers claim."""
    machine = dataclasses.replace(machine, run=Once(machine.run))
    links = ask(machine, notes, "netdevs", ("ip", "-d", "-j", "addr", "show"), parse_addresses)
    node, troubles = read_owners(machine)
    for trouble in troubles:
        notes.trouble("network_owner", trouble)
    netdevs, findings = [], []
    for name, link in (links or {}).items():
        if name == _LOOPBACK:
            continue
        owner, problem = _owner(node, name)
        if problem is not None:
            findings.append(problem)
        netdevs.append({"name": name, "up": link.up, "carrier": link.carrier, "mtu_bytes": link.mtu_bytes,
                        "addresses": [one.text for one in link.addresses], **owner})
    routes: list[model.Route] = []
    for family in (4, 6):
        argv = ("ip", "-j", f"-{family}", "route", "show", "default")

        def read(text: str, family: int = family) -> list[model.Route]:
            return parse.default_routes(text, family)

        routes += ask(machine, notes, "default_routes", argv, read) or []
    return {"netdevs": netdevs if links is not None else None}, routes, findings


def lldp(machine: Machine, notes: Notes) -> list[dict[str, t.Any]] | None:
    """The daemon's socket is root's on most systems."""
    argv = ("lldpcli", "-f", "json0", "show", "neighbors")
    found = ask(machine, notes, "lldp", argv, parse.neighbours, root_only=True)
    return None if found is None else [dataclasses.asdict(one) for one in found]
