# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a host's mlx5 ports, computed when asked from the host's real links and addresses.

``sysfs`` is a real sysfs of the host's network namespace. Rules and their sources: RDMA MTU
mlx5-roce.md 2.1; port states 1.1; GIDs 3.2.
"""
from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from lab.hardware.gids import EMPTY, Gid, GidTable
from lab.hardware.netlink import Addresses, Event
from lab.hardware.spec import VENDOR_ID, NodeSpec, RailSpec

# GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4 (include/rdma/ib_addr.h iboe_get_mtu).
RDMA_HEADER_BYTES = 96
RDMA_MTU_BYTES = (4096, 2048, 1024, 512, 256)
IFF_UP = 0x1
# Link rate -> how the kernel names it; a port without carrier shows QDR whatever it can do (1.1).
RATES = {400: "400 Gb/sec (4X NDR)", 200: "200 Gb/sec (4X HDR)", 100: "100 Gb/sec (4X EDR)"}
DOWN_RATE = "40 Gb/sec (4X QDR)"


def rdma_mtu(netdev_mtu: int) -> int:
    """Bytes; 0 when the netdev's MTU is below 352."""
    return next((size for size in RDMA_MTU_BYTES if size <= netdev_mtu - RDMA_HEADER_BYTES), 0)


class Port:
    """One rail as it is now."""

    def __init__(self, rail: RailSpec, sysfs: Path) -> None:
        self.rail, self.net = rail, sysfs / "class" / "net" / rail.netdev
        self.gids = GidTable(rail.mac)
        self.ifindex = int(self.read("ifindex") or 0)

    def read(self, name: str) -> str:
        """An attribute of the real netdev; empty when the link is gone or does not answer (carrier of a down link)."""
        with contextlib.suppress(OSError):
            return (self.net / name).read_text(encoding="ascii").strip()
        return ""

    @property
    def active(self) -> bool:
        up = int(self.read("flags") or "0", 16) & IFF_UP
        return bool(up) and self.read("carrier") == "1"

    @property
    def state(self) -> tuple[int, str]:
        return (4, "ACTIVE") if self.active else (1, "DOWN")

    @property
    def phys_state(self) -> tuple[int, str]:
        return (5, "LinkUp") if self.active else (3, "Disabled")

    @property
    def rate(self) -> str:
        return RATES[int(self.rail.rate_gbps)] if self.active else DOWN_RATE

    @property
    def active_mtu(self) -> int:
        return rdma_mtu(int(self.read("mtu") or 0))

    def counter(self, statistic: str) -> int:
        return int(self.read(f"statistics/{statistic}") or 0)

    def apply(self, event: Event) -> None:
        (self.gids.add if event.added else self.gids.remove)(event.address)

    def resync(self, addresses: list[str]) -> None:
        """Events were lost: drop what is gone, then add what is new."""
        from lab.hardware.gids import of_address

        present = {of_address(address) for address in addresses}
        for value in self.gids.addresses():
            if value not in present:
                self.gids.remove(value)
        for address in addresses:
            self.gids.add(address)


class Node:
    def __init__(self, spec: NodeSpec, sysfs: Path, addresses: Addresses) -> None:
        self.ports = {rail.rdma: Port(rail, sysfs) for rail in spec.rails}
        self._addresses = addresses
        self._by_ifindex = {port.ifindex: port for port in self.ports.values()}

    def refresh(self) -> None:
        """Bring the GID tables up to what has happened so far."""
        events, everything = self._addresses.drain()
        if everything is not None:
            for port in self.ports.values():
                port.resync([event.address for event in everything if event.ifindex == port.ifindex])
        for event in events:
            if event.ifindex in self._by_ifindex:
                self._by_ifindex[event.ifindex].apply(event)

    def gid(self, rdma: str, index: int) -> Gid | None:
        self.refresh()
        return self.ports[rdma].gids[index]

    def gid_value(self, rdma: str, index: int) -> str:
        gid = self.gid(rdma, index)
        return gid.value if gid else EMPTY

    def verbs(self, rdma: str) -> dict[str, Any]:
        """What ibv_query_device and ibv_query_port answer."""
        self.refresh()
        port = self.ports[rdma]
        rail = port.rail
        return {
            "hca_id": rdma, "fw_ver": rail.firmware, "node_guid": rail.guid, "sys_image_guid": rail.guid,
            # The verbs API names the vendor by its IEEE number, not by its PCI id (sample ibv_devinfo-1).
            "vendor_id": "0x02c9", "vendor_part_id": int(rail.device_id, 16), "hw_ver": "0x0",
            "board_id": rail.board_id, "pci_vendor": VENDOR_ID,
            "state": port.state, "phys_state": port.phys_state, "max_mtu": 4096, "active_mtu": port.active_mtu,
            "link_layer": "Ethernet",
            "gids": [[index, gid.value, gid.type] for index in range(len(port.gids)) if (gid := port.gids[index])],
        }
