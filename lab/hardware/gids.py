# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GID table of one mlx5 RoCE port, by the rule of mlx5-roce 3.2. Pure: events in, slots out.

Slots 0 and 1 are kept for the default GIDs (RoCE v1 and v2 of the link-local address made from the MAC). Every
address takes v1 then v2, each in the lowest free slot, in the order of add events; freed slots are used again. So
an index is the result of history, and two hosts with equal addresses may differ.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LENGTH = 255  # gid_tbl_len of sample ibv_devinfo-2
ROCE_V1 = "IB/RoCE v1"
ROCE_V2 = "RoCE v2"
TYPES = (ROCE_V1, ROCE_V2)
DEFAULTS = len(TYPES)
EMPTY = bytes(16)


@dataclass(frozen=True)
class Entry:
    """One used slot; ``ndev`` is the interface index of the netdev that has the address."""

    gid: bytes
    type: str
    ndev: int


def gid_of_address(address: bytes) -> bytes:
    """4 bytes become ::ffff:a.b.c.d (mlx5-roce 3.1), 16 bytes stay."""
    return bytes(10) + b"\xff\xff" + address if len(address) == 4 else address


def eui64_link_local(mac: str) -> bytes:
    """fe80:: plus the EUI-64 of a MAC (``b8:3f:d2:00:00:30``)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return b"\xfe\x80" + bytes(6) + bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]


def groups(gid: bytes) -> str:
    """The kernel's way to write a GID: eight groups of four digits, nothing shortened."""
    return ":".join(gid[i:i + 2].hex() for i in range(0, 16, 2))


class GidTable:
    """Slots of one port. A full table drops what does not fit, as the kernel does."""

    def __init__(self, length: int = LENGTH) -> None:
        self.slots: list[Entry | None] = [None] * length

    def set_default(self, mac: str, ndev: int) -> None:
        """Put the default GIDs into their slots; they need no address, not even IPv6."""
        gid = eui64_link_local(mac)
        self.slots[:DEFAULTS] = [Entry(gid, kind, ndev) for kind in TYPES]

    def add(self, address: bytes, ndev: int) -> None:
        """An add event. A GID that the table holds already (a default one too) takes no second slot."""
        for kind in TYPES:
            entry = Entry(gid_of_address(address), kind, ndev)
            if entry in self.slots:
                continue
            for index in range(DEFAULTS, len(self.slots)):
                if self.slots[index] is None:
                    self.slots[index] = entry
                    break

    def remove(self, address: bytes, ndev: int) -> None:
        """A remove event; the default GIDs stay even when the same link-local address goes."""
        gid = gid_of_address(address)
        self._free(lambda entry: entry.gid == gid and entry.ndev == ndev)

    def remove_ndev(self, ndev: int) -> None:
        """An upper netdev went: all its GIDs go, the others keep their slots."""
        self._free(lambda entry: entry.ndev == ndev)

    def clear(self) -> None:
        """The port's netdev went or changed its MAC."""
        self.slots = [None] * len(self.slots)

    def resync(self, wanted: list[tuple[bytes, int]]) -> None:
        """Make the table hold exactly ``wanted`` beside the defaults; what stays keeps its slot, new ones in order."""
        keep = {(gid_of_address(address), ndev) for address, ndev in wanted}
        self._free(lambda entry: (entry.gid, entry.ndev) not in keep)
        for address, ndev in wanted:
            self.add(address, ndev)

    def _free(self, gone: Callable[[Entry], bool]) -> None:
        for index in range(DEFAULTS, len(self.slots)):
            entry = self.slots[index]
            if entry is not None and gone(entry):
                self.slots[index] = None

    def used(self) -> list[tuple[int, Entry]]:
        return [(index, entry) for index, entry in enumerate(self.slots) if entry is not None]
