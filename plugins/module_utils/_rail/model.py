# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The network settings of a node's rails: what a call wants, what runs, what is saved."""
from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import asdict, dataclass, field

from .._host.errors import Problem
from .._idle.model import Policy
from .._net.model import NetState
from .._networkd.model import Networkd

HEADER = "# Written by aidc.gpu_cluster.rail_network, which rewrites it: do not edit."
# Stands from the first write until the owner has taken the files over; /run is empty after a boot.
PENDING_FILE = "/run/aidc/rail-network.pending"
SYSCTL_KEYS = ("arp_ignore", "arp_announce", "rp_filter")
# For a route to everything: an address that belongs to nobody [RFC 5737, RFC 3849]. No packet is sent.
NOBODY = {4: "192.0.2.1", 6: "2001:db8::1"}

OWNERS = ("networkd", "netplan", "networkmanager")
OwnerName = t.Literal["networkd", "netplan", "networkmanager"]
Disruptive = t.Literal["none", "link"]


def rule_text(source: str, table: int, priority: int) -> str:
    return f"priority {priority} from {source} table {table}"


def route_text(destination: str, gateway: str | None, table: int) -> str:
    return f"{destination} via {gateway} table {table}" if gateway else f"{destination} table {table}"


@dataclass(frozen=True)
class Want:
    """A rail. ``address`` is ADDRESS/LENGTH. With a gateway the rail has a table and a rule of its own."""

    rail: int
    pci: str
    address: str
    mtu_bytes: int
    gateway: str | None = None
    destinations: tuple[str, ...] = ()
    table: int = 0
    priority: int = 0

    @property
    def interface(self) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
        return ipaddress.ip_interface(self.address)

    @property
    def ip(self) -> str:
        return str(self.interface.ip)

    @property
    def subnet(self) -> str:
        return str(self.interface.network)

    @property
    def version(self) -> int:
        return self.interface.version

    @property
    def rules(self) -> tuple[str, ...]:
        return (rule_text(self.ip, self.table, self.priority),) if self.gateway else ()

    @property
    def routes(self) -> tuple[str, ...]:
        """In the rail's own table: its subnet without a gateway, the rest through the gateway."""
        if not self.gateway:
            return ()
        return (route_text(self.subnet, None, self.table),
                *(route_text(there, self.gateway, self.table) for there in self.destinations))

    @property
    def peer(self) -> str:
        """An address beyond the gateway."""
        for there in self.destinations:
            network = ipaddress.ip_network(there)
            if network.prefixlen:
                # The first address of the network may be in the rail's own subnet; the last is far from it.
                return str(network[-1] if network.num_addresses <= 2 else network[-2])
        return NOBODY[self.version]


@dataclass(frozen=True)
class Request:
    rails: tuple[Want, ...]
    # The manager for ports that nobody manages.
    owner: OwnerName | t.Literal["auto"] = "auto"
    sysctls: tuple[tuple[str, int], ...] = ()
    disruption_policy: Policy = "if_idle"
    allow_management: bool = False
    # How long the undo waits for the controller; 0: none is armed.
    revert_seconds: float = 0

    def sysctls_of(self, want: Want) -> dict[str, int]:
        """They are about ARP and IPv4's source check, so a rail with an IPv6 address has none."""
        return dict(self.sysctls) if want.version == 4 else {}


@dataclass(frozen=True)
class Stanza:
    """What the files of an owner say about a port. Rules and routes are texts: see rule_text, route_text."""

    addresses: tuple[str, ...] = ()
    mtu_bytes: int | None = None
    ignore_carrier: bool = False
    rules: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A file that must have this text; ``netdevs`` are those for whom it changes something."""

    path: str
    text: str
    mode: int
    netdevs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Present:
    text: str
    mode: int


@dataclass(frozen=True)
class Connection:
    """A profile of NetworkManager."""

    name: str
    uuid: str
    device: str
    path: str


@dataclass(frozen=True)
class NetworkManager:
    """``devices`` has (state, name of the active profile) by netdev."""

    active: bool = False
    devices: dict[str, tuple[str, str]] = field(default_factory=dict)
    connections: tuple[Connection, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True)
class Address:
    """A global address with its length; ``dynamic`` ones have a lifetime (DHCP, RA)."""

    text: str
    dynamic: bool = False


@dataclass(frozen=True)
class Running:
    """One link as ``ip -j addr`` shows it."""

    up: bool = False
    carrier: bool = False
    mtu_bytes: int | None = None
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Port:
    """A rail's PCI function with its netdev; ``sysctls`` are effective values, ``sysctls_all`` those of `all`."""

    pci: str
    netdev: str | None = None
    rdma_device: str | None = None
    present: bool = True
    is_vf: bool = False
    ethernet: bool = True
    sysctls: dict[str, int] = field(default_factory=dict)
    sysctls_all: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """The kernel's answer to: which way from the rail's address to its peer?"""

    gateway: str | None
    device: str | None
    error: str = ""


@dataclass(frozen=True)
class Node:
    """All that one read gives."""

    ports: dict[str, Port] = field(default_factory=dict)
    net: NetState = field(default_factory=NetState)
    running: dict[str, Running] = field(default_factory=dict)
    networkd: Networkd = field(default_factory=Networkd)
    manager: NetworkManager = field(default_factory=NetworkManager)
    # netplan's merged definitions; ports in /etc/network/interfaces.
    netplan: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    has_netplan: bool = False
    ifupdown: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    rule_priorities: tuple[int, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    proofs: dict[str, Proof] = field(default_factory=dict)
    files: dict[str, Present] = field(default_factory=dict)
    pending: bool = False
    problems: tuple[Problem, ...] = ()

    def text(self, path: str) -> str | None:
        found = self.files.get(path)
        return found.text if found else None

    def link(self, pci: str) -> Running:
        return self.running.get(self.netdev(pci), Running())

    def netdev(self, pci: str) -> str:
        port = self.ports.get(pci)
        return port.netdev or "" if port else ""


@dataclass(frozen=True)
class Step:
    """One mutation: an argv list, ("write", path), ("remove", path) or ("set", path, value) for a file of /proc.

    A step that ``judges`` files is the owner's word on them: if it fails they are put back.
    """

    command: tuple[str, ...]
    why: str
    disruptive: Disruptive = "none"
    netdevs: tuple[str, ...] = ()
    text: str = ""
    mode: int = 0o644
    judges: bool = False
    waits: bool = False

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": self.disruptive, "why": self.why,
                "netdevs": list(self.netdevs)}


def plain(stanza: Stanza) -> dict[str, t.Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(stanza).items()}
