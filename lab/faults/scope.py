# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a fault acts: hosts, rails and leaves of a running lab, as ``up`` recorded them."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import fabric
from lab.faults.table import FaultError, Row, expand
from lab.instance import Instance


@dataclass(frozen=True)
class Rail:
    number: int
    port: fabric.Port
    pci: str
    rdma: str

    def values(self) -> dict[str, Any]:
        return {
            "rail": self.number, "port": self.port.fabric_interface, "interface": self.port.interface,
            "mac": self.port.mac, "bridge": self.port.bridge, "rate": fabric.scaled_bit(self.port.rate_gbps or 0),
            "bucket": fabric.BUCKET, "port_mtu": fabric.LEAF_MTU_BYTES, "pci": self.pci, "rdma": self.rdma,
        }


@dataclass(frozen=True)
class Host:
    name: str
    ports: tuple[fabric.Port, ...]
    rails: tuple[Rail, ...]

    @property
    def leaf(self) -> str:
        return self.rails[0].port.bridge.rsplit("-r", 1)[0] if self.rails else ""


@dataclass(frozen=True)
class Place:
    """One spot where a fault's steps are done: a host, or one rail of it."""

    host: str
    values: dict[str, Any]


def read_host(directory: Path) -> Host:
    record = json.loads((directory / "host.json").read_text(encoding="utf-8"))
    ports = tuple(fabric.Port(**port) for port in record["ports"])
    spec = {rail["netdev"]: rail for rail in json.loads(record["spec"])["rails"]} if record["spec"] else {}
    rails = tuple(Rail(number, port, spec[port.interface]["pci"], spec[port.interface]["rdma"])
                  for number, port in enumerate(port for port in ports if port.rate_gbps is not None))
    return Host(directory.name, ports, rails)


def hosts(instance: Instance) -> dict[str, Host]:
    """All hosts of the lab. Raises FaultError when there are none."""
    names = instance.read().get("hosts", [])
    found = {name: read_host(instance.host_dir(name)) for name in names
             if (instance.host_dir(name) / "host.json").exists()}
    if not found:
        raise FaultError(f"{instance.name} is not up; start it with: ./lab/lab up")
    return found


def _host(there: dict[str, Host], row: Row, target: str) -> Host:
    if target not in there:
        raise FaultError(f"{row.name}: no host {target!r}; there are: {', '.join(there)}")
    if row.target != "host" and not there[target].rails:
        raise FaultError(f"{row.name}: host {target} has no rails; with rails are: "
                         f"{', '.join(name for name, host in there.items() if host.rails) or 'none'}")
    return there[target]


def _rail(row: Row, host: Host, number: int) -> Rail:
    if number >= len(host.rails):
        raise FaultError(f"{row.name}: host {host.name} has no rail {number}; it has 0 to {len(host.rails) - 1}")
    return host.rails[number]


def places(there: dict[str, Host], row: Row, target: str, parameters: dict[str, Any]) -> list[Place]:
    """Where ``row`` acts on ``target``. Raises FaultError when there is no such host, leaf or rail."""
    if row.target == "leaf":
        on_leaf = [host for host in there.values() if host.leaf == target]
        if not target or not on_leaf:
            leaves = sorted({host.leaf for host in there.values() if host.leaf})
            raise FaultError(f"{row.name}: no leaf {target!r}; there are: {', '.join(leaves)}")
        pairs = [(host, rail) for host in on_leaf for rail in host.rails if rail.number == parameters["rail"]]
        if not pairs:
            raise FaultError(f"{row.name}: no host on {target} has a rail {parameters['rail']}")
    else:
        host = _host(there, row, target)
        if row.target == "host":
            return [Place(host.name, {"host": host.name, "leaf": host.leaf, **parameters})]
        pairs = [(host, rail) for rail in (
            [_rail(row, host, parameters["rail"])] if row.target == "rail" else host.rails)]
    return [Place(host.name, {"host": host.name, "leaf": host.leaf, **parameters, **rail.values()})
            for host, rail in pairs]


def touched(row: Row, spots: list[Place]) -> list[str]:
    """What the fault changes, in words; no two faults may change the same."""
    return sorted({str(expand(row.touches, spot.values)) for spot in spots})
