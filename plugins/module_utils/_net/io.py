# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read from the machine what its ports are used for."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from . import parse
from .model import Link, NetState

T = t.TypeVar("T")
_ANCESTORS = 64
_LOOPBACK = "lo"


def _ask(machine: Machine, argv: tuple[str, ...], parser: t.Callable[[str], T], empty: T, bad: list[Problem]) -> T:
    found = machine.tool(*argv).parsed(parser, bad, "its JSON output", "iproute2 is needed to see what the ports carry")
    return empty if found is None else found


def _connection(machine: Machine) -> str | None:
    """Local address of our own SSH connection.

    ``become`` drops SSH_CONNECTION from our environment, but the shell that sshd started, one of our
    ancestors, still has it.
    """
    pid = machine.pid
    for _step in range(_ANCESTORS):
        try:
            found = parse.ssh_local_address(machine.path(f"/proc/{pid}/environ").read_bytes())
        except OSError:
            # Another user's process, or gone.
            found = None
        if found:
            return found
        pid = parse.parent_pid(read_text(machine.path(f"/proc/{pid}/status")) or "")
        if pid <= 1:
            return None
    return None


def _ssh_addresses(machine: Machine) -> tuple[str, ...]:
    own = _connection(machine)
    if own:
        return (own,)
    # No ancestor (an async task is re-parented), or no SSH at all: then every connection of sshd counts.
    result = machine.tool("ss", "-tnHp", "state", "established")
    return parse.sshd_local_addresses(result.stdout) if result.state == "ok" else ()


def _storage(machine: Machine) -> tuple[tuple[str, str], ...]:
    servers = list(parse.storage_servers(read_text(machine.path("/proc/self/mountinfo")) or ""))
    sysfs = Sysfs(machine.path("/sys"))
    for name in sysfs.names("class/nvme"):
        server = parse.nvme_server(sysfs.read(f"class/nvme/{name}/address").value)
        if server:
            servers.append(server)
    found = []
    for server in dict.fromkeys(servers):
        result = machine.tool("ip", "-j", "route", "get", server)
        # No route to a server that is down is its operator's matter: no port carries it now.
        if result.state == "ok":
            found += [(server, device) for device in parse.route_devices(result.stdout) if device != _LOOPBACK]
    return tuple(found)


def gather(machine: Machine) -> NetState:
    bad: list[Problem] = []
    none: dict[str, Link] = {}
    links = _ask(machine, ("ip", "-d", "-j", "addr", "show"), parse.links, none, bad)
    defaults: list[str] = []
    for family in ("-4", "-6"):
        # The main table only: a rail's own policy table may well have a default route.
        argv = ("ip", "-j", family, "route", "show", "default")
        defaults += _ask(machine, argv, parse.route_devices, (), bad)
    return NetState(links, tuple(dict.fromkeys(defaults)), _ssh_addresses(machine), _storage(machine), tuple(bad))
