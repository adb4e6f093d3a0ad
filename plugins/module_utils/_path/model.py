# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A path from an interface of this host to a peer, and what packet size it carries. Pure."""
from __future__ import annotations

import dataclasses
import re
import typing as t
from dataclasses import dataclass

# IPv4 20 + ICMP 8: `ping -s` counts the payload (ping(8)).
HEADER_BYTES = 28
# MTUs in use; a path that is too small is asked with those below the wanted size.
USUAL_MTUS_BYTES = (9216, 9000, 8192, 4200, 4096, 2048, 1500, 1400, 1280, 576, 84)
_LOCAL = re.compile(r"message too long(?:,? mtu[:=] ?(\d+))?", re.IGNORECASE)
_ROUTER = re.compile(r"From (\S+).*(?:Frag needed|too big).*mtu ?= ?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """``size_bytes`` is the IP packet's size, which is the MTU that the path needs."""

    interface: str
    address: str
    size_bytes: int
    source: str = ""
    peer: str = ""
    peer_interface: str = ""
    rail: int | None = None

    def argv(self, size_bytes: int, wait_seconds: int) -> tuple[str, ...]:
        """One echo request that must not be fragmented."""
        return ("ping", "-n", "-M", "do", "-c", "1", "-W", str(wait_seconds), "-s", str(size_bytes - HEADER_BYTES),
                "-I", self.interface, self.address)


@dataclass(frozen=True)
class Answer:
    """``largest_bytes`` is the largest size that passed of those that were tried; 0 is none."""

    target: Target
    passed: bool
    largest_bytes: int
    reason: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self.target), "passed": self.passed, "largest_bytes": self.largest_bytes,
                "reason": self.reason}


def smaller_sizes(size_bytes: int) -> list[int]:
    return [size for size in USUAL_MTUS_BYTES if size < size_bytes]


def reason_of(text: str) -> str:
    """Why ping says that a packet did not pass; empty when it was lost without a word."""
    local = _LOCAL.search(text)
    if local:
        return f"this end's MTU is {local[1] or 'smaller'}"
    router = _ROUTER.search(text)
    if router:
        return f"{router[1]} says that the next link's MTU is {router[2]}"
    for words in ("Network is unreachable", "unknown iface", "No such device", "Destination Host Unreachable",
                  "Cannot assign requested address", "Operation not permitted"):
        if words.lower() in text.lower():
            return words
    return ""
