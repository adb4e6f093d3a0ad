# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts on which rows run, and the words that a row may use for them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import fleet
from lab.faults import scope
from lab.hardware.spec import shape_names
from lab.instance import Instance
from tests.faults.rows import Row


@dataclass(frozen=True)
class Rail:
    number: int
    pci: str
    netdev: str
    rdma: str
    ip: str
    length: int

    @property
    def identifiers(self) -> tuple[str, ...]:
        return (self.pci, self.netdev, self.rdma, f"rail {self.number}", f"rail{self.number}", self.ip)


@dataclass(frozen=True)
class Host:
    name: str
    node_class: str
    owner: str
    leaf: str
    rails: tuple[Rail, ...]
    # As the inventory has them, gateways and all.
    planned: list[dict[str, Any]]

    def fits(self, where: Mapping[str, str]) -> bool:
        return where.get("class", self.node_class) == self.node_class and where.get("owner", self.owner) == self.owner


@dataclass(frozen=True)
class Place:
    """Where a row is run."""

    host: Host
    rail: Rail
    peer: Host | None = None

    def words(self) -> dict[str, Any]:
        """What stands for {...} in the texts of a row."""
        words: dict[str, Any] = {
            "host": self.host.name, "leaf": self.host.leaf, "rail": self.rail.number, "pci": self.rail.pci,
            "netdev": self.rail.netdev, "rdma": self.rail.rdma, "ip": self.rail.ip, "length": self.rail.length,
            "subnet": ".".join(self.rail.ip.split(".")[:3]),
            "netdevs": " ".join(rail.netdev for rail in self.host.rails),
            "vf": f"{self.rail.pci[:-1]}1", "planned_rails": self.host.planned,
        }
        for rail in self.host.rails:
            words.update({f"pci{rail.number}": rail.pci, f"netdev{rail.number}": rail.netdev,
                          f"rdma{rail.number}": rail.rdma, f"ip{rail.number}": rail.ip})
        if self.peer is not None:
            other = self.peer.rails[self.rail.number]
            words.update(peer=self.peer.name, peer_ip=other.ip, peer_netdev=other.netdev, peer_pci=other.pci)
        return words

    def fill(self, value: Any) -> Any:
        """``value`` with its {words} replaced, at any depth; a text that is one word alone keeps its type."""
        words = self.words()
        if isinstance(value, str):
            alone = value[1:-1]
            return words[alone] if value == f"{{{alone}}}" and alone in words else value.format_map(words)
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        return [self.fill(item) for item in value] if isinstance(value, (list, tuple)) else value


def read(instance: Instance, source: str) -> dict[str, Host]:
    """The hosts of a running lab that have rails."""
    about = scope.hosts(instance)
    plan = fleet.load(fleet.fleet_path(source), {*shape_names(), fleet.NO_HARDWARE})
    found = {}
    for host in plan.hosts:
        rails = []
        for rail in about[host.name].rails:
            address, _slash, length = plan.rail_interface(host, rail.number).partition("/")
            rails.append(Rail(rail.number, rail.pci, rail.port.interface, rail.rdma, address, int(length)))
        if rails:
            found[host.name] = Host(host.name, host.node_class, host.persona.owner, host.leaf or "", tuple(rails),
                                    host.variables.get("rail_network_rails", []))
    return found


def candidates(hosts: Mapping[str, Host], row: Row) -> list[tuple[Host, Host | None]]:
    """Hosts on which the row can run, with a peer where it wants one; the row's rail exists on all of them."""
    fit = [host for host in hosts.values() if host.fits(row.where) and row.rail < len(host.rails)]
    if not row.peer:
        return [(host, None) for host in fit]
    return [(host, other) for host in fit for other in hosts.values()
            if other is not host and other.leaf == host.leaf and other.node_class == host.node_class]
