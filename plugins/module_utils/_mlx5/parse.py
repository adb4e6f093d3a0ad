# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse sysfs values of RDMA ports and the output of ``ibv_devinfo``. Never touches the machine."""
from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from .model import Gid

_MTU = re.compile(r"(\d+) \(\d\)")
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec")
# sysfs always has 8 groups of 4 digits.
_GID = re.compile(r"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}")
_ZERO = int(ipaddress.IPv6Address("::"))
_BARE_LINK_LOCAL = int(ipaddress.IPv6Address("fe80::"))


@dataclass(frozen=True)
class Devinfo:
    """One ``hca_id`` block: MTU in bytes by port number, 0 for "invalid MTU" (netdev MTU below 352)."""

    firmware_version: str | None = None
    psid: str | None = None
    active_mtu_bytes: dict[int, int] = field(default_factory=dict)


def numbered(text: str) -> str | None:
    """Name in ``4: ACTIVE`` or ``5: LinkUp``."""
    _number, separator, name = text.partition(":")
    return name.strip() or None if separator else None


def speed_gbps(rate: str, state: str | None) -> float | None:
    """Speed of a port that is up. A down RoCE port shows ``40 Gb/sec (4X QDR)``, which means nothing."""
    match = _RATE.match(rate)
    return float(match.group(1)) if match and state == "ACTIVE" else None


def is_gid_used(text: str) -> bool:
    """False for an empty slot (zeros) and for the bare prefix fe80::."""
    return bool(_GID.fullmatch(text)) and int(ipaddress.IPv6Address(text)) not in (_ZERO, _BARE_LINK_LOCAL)


def gid(index: int, text: str, kind: str | None, ndev: str | None) -> Gid:
    address = ipaddress.IPv6Address(text)
    mapped = address.ipv4_mapped
    return Gid(index, text, kind, ndev, "ipv4" if mapped else "ipv6", str(mapped or address))


def _mtu(value: str) -> int:
    match = _MTU.fullmatch(value)
    if match:
        return int(match.group(1))
    # rdma-core prints this for enum value 0.
    if value.startswith("invalid MTU"):
        return 0
    raise ValueError(f"active_mtu: {value[:40]!r}")


class _Block:
    """An hca_id block while it is read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, str] = {}
        self.port: int | None = None
        self.mtus: dict[int, int] = {}
        self.ports: list[int] = []

    def take(self, key: str, value: str) -> None:
        if key == "port":
            self.port = int(value)
            self.ports.append(self.port)
        elif key == "active_mtu" and self.port is not None:
            self.mtus[self.port] = _mtu(value)
        elif self.port is None:
            self.values[key] = value

    def finish(self) -> Devinfo:
        bare = [number for number in self.ports if number not in self.mtus]
        if bare:
            raise ValueError(f"{self.name} port {bare[0]} has no active_mtu")
        return Devinfo(self.values.get("fw_ver"), self.values.get("board_id"), self.mtus)


def devinfo(text: str) -> dict[str, Devinfo]:
    """Blocks of ``ibv_devinfo`` by hca_id; ValueError for text that is not its output or is cut off."""
    blocks: list[_Block] = []
    for line in text.splitlines():
        key, separator, value = line.strip().partition(":")
        if not separator:
            continue
        if key == "hca_id":
            blocks.append(_Block(value.strip()))
        elif blocks:
            blocks[-1].take(key.strip(), value.strip())
    if not blocks:
        raise ValueError("no hca_id line")
    return {block.name: block.finish() for block in blocks}
