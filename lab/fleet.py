# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet file: what hosts a lab has. Read and checked whole before anything is made."""
from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lab.personas import DEFAULT, PERSONAS, Persona

FLEETS = Path(__file__).parent / "fleets"
# An interface name has at most 15 characters, and the fabric's end of a rail is called HOST-rN.
HOST_NAME = re.compile(r"^[a-z][a-z0-9]{0,10}$")
NO_HARDWARE = "login"
KEYS = ("management", "leaves", "hosts", "jump", "groups")
SUDO = ("free", "password")


class FleetError(Exception):
    """The fleet file cannot be used; the message names file, key, what was found and wanted."""


@dataclass(frozen=True)
class Host:
    """One host. ``number`` is its place in the file, from 1; addresses are made from it."""

    name: str
    node_class: str
    number: int
    leaf: str | None
    variables: dict[str, Any]
    persona: Persona = PERSONAS[DEFAULT]
    sudo_password: bool = False


@dataclass(frozen=True)
class Fleet:
    source: Path
    management: ipaddress.IPv4Network
    leaves: dict[str, ipaddress.IPv4Network]
    hosts: tuple[Host, ...]
    # The host through which all others are reached; None: all directly.
    jump: str | None = None
    # Inventory groups beside the classes: hosts or classes in each.
    groups: dict[str, list[str]] = field(default_factory=dict)

    def management_address(self, host: Host) -> str:
        return str(self.management[host.number])

    def fabric_address(self) -> str:
        """The fabric's own address in the management network: the last but one."""
        return str(self.management[-2])

    def rail_interface(self, host: Host, rail: int) -> str:
        """Address with prefix length that the inventory's plan gives ``host`` on ``rail``: ``10.21.3.2/24``."""
        return f"{self.rail_subnet(host, rail)[host.number]}/24"

    def rail_subnet(self, host: Host, rail: int) -> ipaddress.IPv4Network:
        assert host.leaf is not None
        return list(self.leaves[host.leaf].subnets(new_prefix=24))[rail]

    def behind_jump(self, host: Host) -> bool:
        return self.jump is not None and host.name != self.jump

    def host(self, name: str) -> Host:
        """Raises FleetError with the names there are."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise FleetError(f"host {name!r}: wanted one of {', '.join(host.name for host in self.hosts)}")


def fleet_path(name: str) -> Path:
    """A fleet by the name of a shipped file, or by path."""
    shipped = FLEETS / f"{name}.yml"
    return shipped if shipped.exists() else Path(name)


def _network(where: str, value: Any) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(value)
    except ValueError as error:
        raise FleetError(f"{where}: got {value!r}, wanted an IPv4 network such as 10.21.0.0/16 ({error})") from error


def _one_of(where: str, value: Any, known: Iterable[str]) -> str:
    if value not in known:
        raise FleetError(f"{where}: got {value!r}, wanted one of {', '.join(known)}")
    return str(value)


def _host(where: str, number: int, entry: Any, leaves: dict[str, ipaddress.IPv4Network], classes: set[str]) -> Host:
    if not isinstance(entry, dict):
        raise FleetError(f"{where}: got {entry!r}, wanted a mapping with name and class")
    rest = dict(entry)
    name, node_class, leaf = rest.pop("name", None), rest.pop("class", None), rest.pop("leaf", None)
    if not isinstance(name, str) or not HOST_NAME.match(name):
        raise FleetError(f"{where}.name: got {name!r}, wanted 1 to 11 lower-case letters and digits")
    known = sorted(classes | {NO_HARDWARE})
    if node_class not in known:
        raise FleetError(f"{where}.class: got {node_class!r}, wanted one of {', '.join(known)}")
    if node_class != NO_HARDWARE and leaf not in leaves:
        raise FleetError(f"{where}.leaf: got {leaf!r}, wanted one of {', '.join(sorted(leaves))}")
    persona = _one_of(f"{where}.persona", rest.pop("persona", DEFAULT), PERSONAS)
    sudo = _one_of(f"{where}.sudo", rest.pop("sudo", SUDO[0]), SUDO)
    return Host(name, node_class, number, leaf, rest, PERSONAS[persona], sudo == SUDO[1])


def _mapping(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise FleetError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise FleetError(f"{path}: got {type(data).__name__}, wanted a mapping with management, leaves and hosts")
    unknown = set(data) - set(KEYS)
    if unknown:
        raise FleetError(f"{path}: unknown key {', '.join(sorted(unknown))}; known are {', '.join(KEYS)}")
    return data


def _groups(path: Path, data: Any, known: list[str]) -> dict[str, list[str]]:
    if not isinstance(data, dict) or not all(isinstance(members, list) and members for members in data.values()):
        raise FleetError(f"{path}: groups: got {data!r}, wanted a list of hosts and classes for each name")
    for name, members in data.items():
        if name in known:
            raise FleetError(f"{path}: groups.{name}: got the name of a host or class, wanted one of its own")
        for member in members:
            _one_of(f"{path}: groups.{name}", member, known)
    return data


def load(path: Path, classes: set[str]) -> Fleet:
    """Read ``path``; ``classes`` are the known hardware shapes. Raises FleetError."""
    data = _mapping(path)
    management = _network(f"{path}: management", data.get("management"))
    leaves = {name: _network(f"{path}: leaves.{name}", value) for name, value in (data.get("leaves") or {}).items()}
    entries = data.get("hosts") or []
    hosts = tuple(_host(f"{path}: hosts[{at}]", at + 1, entry, leaves, classes) for at, entry in enumerate(entries))
    if not hosts:
        raise FleetError(f"{path}: hosts: got none, wanted at least one")
    names = [host.name for host in hosts]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise FleetError(f"{path}: hosts: name used twice: {', '.join(double)}")
    if len(hosts) > min(management.num_addresses - 3, 250):
        raise FleetError(f"{path}: hosts: {len(hosts)} do not fit into {management} (250 at most)")
    networks = [management, *leaves.values()]
    for at, one in enumerate(networks):
        for other in networks[at + 1:]:
            if one.overlaps(other):
                raise FleetError(f"{path}: networks {one} and {other} overlap")
    jump = data.get("jump")
    if jump is not None:
        _one_of(f"{path}: jump", jump, names)
    groups = _groups(path, data.get("groups") or {}, [*names, *sorted({host.node_class for host in hosts})])
    return Fleet(path, management, leaves, hosts, jump, groups)
