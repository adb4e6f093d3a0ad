# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A RoCE port's GID table, kept by the rules of roce_gid_mgmt.c (mlx5-roce.md 3.2).

The first two slots hold the default GIDs: RoCE v1 and v2 of the link-local address made from the MAC,
with or without that address on the netdev. Each address takes a pair (v1, v2) in the lowest free
slots, in the order of events; freed slots are used again. So an index is history, not configuration.
"""
from __future__ import annotations

import ipaddress
from dataclasses import dataclass

# Number of entries: gid_tbl_len of the firmware less reserved slots, often 255 (mlx5-roce.md 1.1).
LENGTH = 255
V1, V2 = "IB/RoCE v1", "RoCE v2"
EMPTY = ":".join(["0000"] * 8)


@dataclass(frozen=True)
class Gid:
    value: str
    type: str


def of_address(address: str) -> str:
    """GID in sysfs' form, 8 groups of 4 digits; IPv4 as ::ffff:a.b.c.d."""
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        parsed = ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + parsed.packed)
    return parsed.exploded


def default_address(mac: str) -> str:
    """The EUI-64 link-local address of ``mac`` (RFC 4291, appendix A)."""
    octets = [int(part, 16) for part in mac.split(":")]
    octets[0] ^= 0x02
    interface = bytes([*octets[:3], 0xFF, 0xFE, *octets[3:]])
    return str(ipaddress.IPv6Address(b"\xfe\x80" + b"\0" * 6 + interface))


class GidTable:
    def __init__(self, mac: str, length: int = LENGTH) -> None:
        default = of_address(default_address(mac))
        self._slots: list[Gid | None] = [Gid(default, V1), Gid(default, V2), *[None] * (length - 2)]
        self._default = default

    def __getitem__(self, index: int) -> Gid | None:
        return self._slots[index]

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, address: str) -> None:
        """An address appeared. Known ones and the default are no news; a full table drops it, as the kernel does."""
        value = of_address(address)
        if value == self._default or any(slot and slot.value == value for slot in self._slots):
            return
        for kind in (V1, V2):
            for index, slot in enumerate(self._slots):
                if slot is None:
                    self._slots[index] = Gid(value, kind)
                    break

    def remove(self, address: str) -> None:
        value = of_address(address)
        if value != self._default:
            self._slots = [None if slot and slot.value == value else slot for slot in self._slots]

    def addresses(self) -> list[str]:
        """GID values beside the default one, in slot order."""
        values = [slot.value for slot in self._slots if slot and slot.value != self._default]
        return list(dict.fromkeys(values))
