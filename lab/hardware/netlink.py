# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Address events of the network namespace that this process is in, in the order they happened.

rtnetlink(7). No thread: the socket collects, and whoever is about to answer a question drains it
first. When it overflowed (ENOBUFS) the addresses are read anew; their order is then the kernel's.
"""
from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
NLMSG_DONE, NLMSG_ERROR = 3, 2
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR = 0x10, 0x100
IFA_ADDRESS, IFA_LOCAL = 1, 2
HEADER = struct.Struct("=IHHII")
ADDRESS = struct.Struct("=BBBBI")
ATTRIBUTE = struct.Struct("=HH")


@dataclass(frozen=True)
class Event:
    added: bool
    ifindex: int
    address: str


def parse(data: bytes) -> Iterator[tuple[int, Event | None]]:
    """(message type, event if it is one about an address) for each message in ``data``."""
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, _flags, _sequence, _pid = HEADER.unpack_from(data, at)
        if length < HEADER.size:
            return
        body = data[at + HEADER.size:at + length]
        yield kind, _event(kind, body) if kind in (RTM_NEWADDR, RTM_DELADDR) else None
        at += (length + 3) & ~3


def _event(kind: int, body: bytes) -> Event | None:
    family, _prefix, _flags, _scope, ifindex = ADDRESS.unpack_from(body)
    found: dict[int, bytes] = {}
    at = ADDRESS.size
    while at + ATTRIBUTE.size <= len(body):
        length, name = ATTRIBUTE.unpack_from(body, at)
        if length < ATTRIBUTE.size:
            break
        found[name] = body[at + ATTRIBUTE.size:at + length]
        at += (length + 3) & ~3
    # On IPv4 the local address counts; IFA_ADDRESS is the peer of a point-to-point link.
    raw = found.get(IFA_LOCAL, found.get(IFA_ADDRESS))
    if raw is None:
        return None
    return Event(kind == RTM_NEWADDR, ifindex, socket.inet_ntop(family, raw))


class Addresses:
    """Feeds address events to whoever keeps a table; ``resync`` events come as a list of all addresses."""

    def __init__(self) -> None:
        self._events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._events.bind((0, RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR))
        self._events.setblocking(False)
        self._overflowed = True

    def drain(self) -> tuple[list[Event], list[Event] | None]:
        """(events since the last call, all addresses if events were lost or nothing was read before)."""
        events: list[Event] = []
        while True:
            try:
                data = self._events.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._overflowed = True
                continue
            events += [event for _kind, event in parse(data) if event]
        if not self._overflowed:
            return events, None
        self._overflowed = False
        return [], self.dump()

    def dump(self) -> list[Event]:
        """All addresses of the namespace now."""
        events: list[Event] = []
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as query:
            query.bind((0, 0))
            request = ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
            length = HEADER.size + len(request)
            query.send(HEADER.pack(length, RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + request)
            while True:
                for kind, event in parse(query.recv(1 << 16)):
                    if kind in (NLMSG_DONE, NLMSG_ERROR):
                        return events
                    if event:
                        events.append(event)
