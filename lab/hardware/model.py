# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of one host's emulated ports, computed when asked, from the real netdevs of its network namespace.

MTU and carrier are the kernel's own (sysfs of the namespace); GIDs follow the kernel's address events. Nothing is
stored twice, so what ``ip link set mtu`` changes, every door shows.
What the kernel's netdevs cannot hold is in state.py.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from lab.hardware import gids
from lab.hardware.netlink import AddressEvent, Event, LinkEvent
from lab.hardware.spec import NodeSpec, RailSpec
from lab.hardware.state import State

# GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4 (mlx5-roce 2.1).
ROCE_HEADERS = 96
IB_MTUS = (256, 512, 1024, 2048, 4096)  # as the numbers 1..5
MAX_MTU = 5
# The parent of these is the port's netdev below; a veth's "link" is its peer and no parent.
STACKED = ("vlan", "macvlan", "ipvlan")
WIDTH_CODES = {1: 1, 2: 16, 4: 2, 8: 4}
SPEED_CODES = {"SDR": 1, "DDR": 2, "QDR": 4, "FDR10": 8, "FDR": 16, "EDR": 32, "HDR": 64, "NDR": 128, "XDR": 256}
DOWN_RATE = (40, 4, "QDR")
MELLANOX_OUI = 0x02C9


class EventSource(Protocol):
    """What the model needs of netlink.Reader."""

    def drain(self) -> list[Event] | None: ...

    def dump(self) -> list[Event]: ...


def active_mtu(netdev_mtu: int) -> int:
    """Number of the largest RDMA MTU that fits in a netdev MTU; 0 when none does (mlx5-roce 2.1)."""
    return sum(1 for size in IB_MTUS if size <= netdev_mtu - ROCE_HEADERS)


@dataclass(frozen=True)
class Port:
    """What a port query answers now."""

    up: bool
    netdev: str
    netdev_mtu: int
    rate: tuple[int, int, str]

    @property
    def state(self) -> str:
        return "4: ACTIVE" if self.up else "1: DOWN"

    @property
    def phys_state(self) -> str:
        return "5: LinkUp" if self.up else "3: Disabled"

    @property
    def rate_text(self) -> str:
        return "{} Gb/sec ({}X {})".format(*self.rate)


class Node:
    """Ports of one host. ``refresh`` before reading; not for more than one thread."""

    def __init__(self, spec: NodeSpec, sysfs: str, source: EventSource, state: State | None = None) -> None:
        self.state = state or State(spec)
        # Folders of configfs that somebody made; the tree is made anew when the hardware changes.
        self.cm_folders: set[str] = set()
        self.sysfs = sysfs
        self.source = source
        # Takes the link of a rail down and up; the daemon puts in what reaches the cables.
        self.toggle: Callable[[int], None] = lambda rail: None
        # Reloads the driver, which makes the netdevs anew; the daemon puts in what reaches the launcher.
        self.reload: Callable[[], None] = lambda: None
        self.reloading = False
        self.links: dict[int, LinkEvent] = {}
        self.addresses: dict[int, list[bytes]] = {}
        self.tables = [gids.GidTable() for _rail in spec.rails]
        self.ports: dict[int, int] = {}  # interface index -> rail
        self.resync(source.dump())

    @property
    def spec(self) -> NodeSpec:
        return self.state.spec

    def refresh(self) -> None:
        """Take over what happened since the last look."""
        events = self.source.drain()
        if events is None:
            self.resync(self.source.dump())
            return
        for event in events:
            self.apply(event)

    def resync(self, dump: Iterable[Event]) -> None:
        """Take over a full reading; slots of what is still there are kept."""
        events = list(dump)
        links = [event for event in events if isinstance(event, LinkEvent)]
        for index in set(self.links) - {link.index for link in links}:
            self._link_gone(index)
        self.addresses = {}
        for event in events:
            if isinstance(event, AddressEvent):
                self.addresses.setdefault(event.index, []).append(event.address)
        for link in links:
            self._link(link)
        for rail, table in enumerate(self.tables):
            table.resync(self._addresses_of(rail))

    def apply(self, event: Event) -> None:
        if isinstance(event, LinkEvent):
            if event.new:
                self._link(event)
            else:
                self._link_gone(event.index)
            return
        known = self.addresses.setdefault(event.index, [])
        rail = self.rail_of(event.index)
        if event.new and event.address not in known:
            known.append(event.address)
        elif not event.new and event.address in known:
            known.remove(event.address)
        if rail is not None:
            change = self.tables[rail].add if event.new else self.tables[rail].remove
            change(event.address, event.index)

    def rail_of(self, index: int) -> int | None:
        """The rail whose port carries a netdev: the port's own, or one stacked on it (mlx5-roce 3.2)."""
        for _depth in range(4):
            if index in self.ports:
                return self.ports[index]
            link = self.links.get(index)
            if link is None or link.kind not in STACKED:
                return None
            index = link.parent
        return None

    def _addresses_of(self, rail: int) -> list[tuple[bytes, int]]:
        """Addresses of a port and what is stacked on it: IPv4 first, as the RDMA core enumerates them."""
        mine = [index for index in self.links if self.rail_of(index) == rail]
        pairs = [(address, index) for index in mine for address in self.addresses.get(index, [])]
        return sorted(pairs, key=lambda pair: len(pair[0]))

    def _link(self, link: LinkEvent) -> None:
        old = self.links.get(link.index)
        self.links[link.index] = link
        if link.index not in self.ports:
            free = {rail.netdev: rail.rail for rail in self.spec.rails if rail.rail not in self.ports.values()}
            if link.name not in free:
                return
            self.ports[link.index] = free[link.name]
        elif old is not None and old.mac == link.mac:
            return
        # A port that appeared or has a new MAC starts over: defaults first, then what it has (mlx5-roce 3.2).
        rail = self.ports[link.index]
        self.tables[rail].clear()
        self.tables[rail].set_default(link.mac, link.index)
        self.tables[rail].resync(self._addresses_of(rail))

    def _link_gone(self, index: int) -> None:
        rail = self.rail_of(index)
        if rail is not None:
            if index in self.ports:
                self.tables[rail].clear()
            else:
                self.tables[rail].remove_ndev(index)
        self.ports.pop(index, None)
        self.links.pop(index, None)
        self.addresses.pop(index, None)

    def netdev(self, rail: int) -> str:
        """Present name of a rail's netdev, empty while there is none."""
        return next((self.links[index].name for index, owner in self.ports.items() if owner == rail), "")

    def rail_of_name(self, name: str) -> int | None:
        """The rail whose own netdev has this name."""
        return next((rail for index, rail in self.ports.items() if self.links[index].name == name), None)

    def ndev_name(self, index: int) -> str:
        link = self.links.get(index)
        return link.name if link else ""

    def _number(self, netdev: str, attribute: str) -> int:
        """A number of the real sysfs; 0 when it cannot be read (carrier of a link that is down: EINVAL)."""
        try:
            with open(os.path.join(self.sysfs, "class/net", netdev, attribute), "rb") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def port(self, rail: RailSpec) -> Port:
        """State of a port; without carrier the rate says 40 (mlx5-roce 1.1)."""
        netdev = self.netdev(rail.rail)
        up = bool(netdev) and self._number(netdev, "carrier") == 1
        mtu = self._number(netdev, "mtu") if netdev else 0
        return Port(up, netdev, mtu, (rail.rate_gbps, rail.lanes, rail.lane_speed) if up else DOWN_RATE)

    def query(self, rail: RailSpec) -> dict[str, Any]:
        """The answer of a verbs query of one device."""
        port = self.port(rail)
        return {
            "hca_id": rail.rdma,
            "fw_ver": rail.fw_ver,
            "node_guid": rail.node_guid,
            "sys_image_guid": rail.node_guid,
            "vendor_id": MELLANOX_OUI,
            "vendor_part_id": int(rail.device, 16),
            "hw_ver": int(rail.revision, 16),
            "board_id": rail.board_id,
            "phys_port_cnt": 1,
            "ports": [{
                "port": 1,
                "state": int(port.state[0]),
                "phys_state": int(port.phys_state[0]),
                "max_mtu": MAX_MTU,
                "active_mtu": active_mtu(port.netdev_mtu),
                "sm_lid": 0,
                "port_lid": 0,
                "port_lmc": 0,
                "link_layer": self.state.link_layer(rail.rail),
                "active_width": WIDTH_CODES[port.rate[1]],
                "active_speed": SPEED_CODES[port.rate[2]],
                "gid_tbl_len": gids.LENGTH,
                "gids": [[i, gids.groups(entry.gid), entry.type] for i, entry in self.tables[rail.rail].used()],
            }],
        }
