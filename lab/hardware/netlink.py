# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads links and addresses of the daemon's network namespace over rtnetlink.

No thread: the kernel queues events on a socket, ``drain`` takes what is there. When the queue ran over, what was
lost is unknown; ``drain`` then says so and the model reads everything anew with ``dump``.
"""
from __future__ import annotations

import contextlib
import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP_INTR, NLM_F_DUMP = 1, 0x10, 0x300
GROUP_LINK, GROUP_IPV4_ADDR, GROUP_IPV6_ADDR = 0x1, 0x10, 0x100
SO_RCVBUFFORCE = 33
QUEUE_BYTES = 4 << 20
IFLA_ADDRESS, IFLA_IFNAME, IFLA_LINK, IFLA_LINKINFO, IFLA_INFO_KIND = 1, 3, 5, 18, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
NLMSG = struct.Struct("=IHHII")
IFINFO = struct.Struct("=BxHiII")
IFADDR = struct.Struct("=BBBBI")
ATTRIBUTE = struct.Struct("=HH")
BUFFER = 1 << 16


@dataclass(frozen=True)
class LinkEvent:
    """A netdev appeared, changed or (``new`` false) went."""

    new: bool
    index: int
    name: str = ""
    mac: str = ""
    kind: str = ""
    parent: int = 0


@dataclass(frozen=True)
class AddressEvent:
    """An address came or went, as the RDMA core takes it (4 or 16 bytes)."""

    new: bool
    index: int
    address: bytes


Event = LinkEvent | AddressEvent


def attributes(data: bytes) -> dict[int, bytes]:
    """Split a run of rtattr; the upper two bits of a type are flags."""
    found: dict[int, bytes] = {}
    at = 0
    while at + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = data[at + ATTRIBUTE.size:at + length]
        at += (length + 3) & ~3
    return found


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("ascii", "replace")


def parse_link(kind: int, body: bytes) -> LinkEvent | None:
    family, _type, index, _flags, _change = IFINFO.unpack_from(body)
    if family != socket.AF_UNSPEC:
        return None  # a bridge port's own message: leaving a bridge looks like RTM_DELLINK
    found = attributes(body[IFINFO.size:])
    info = attributes(found.get(IFLA_LINKINFO, b""))
    parent = found.get(IFLA_LINK, bytes(4))
    return LinkEvent(
        kind == RTM_NEWLINK, index, _text(found.get(IFLA_IFNAME, b"")), found.get(IFLA_ADDRESS, b"").hex(":"),
        _text(info.get(IFLA_INFO_KIND, b"")), int.from_bytes(parent, "little"),
    )


def parse_address(kind: int, body: bytes) -> AddressEvent | None:
    family, _length, _flags, _scope, index = IFADDR.unpack_from(body)
    found = attributes(body[IFADDR.size:])
    if family == socket.AF_INET:
        # The peer of a point-to-point link, else the local address (mlx5-roce 3.2): that is IFA_ADDRESS.
        address = found.get(IFA_ADDRESS)
    elif family == socket.AF_INET6:
        address = found.get(IFA_LOCAL, found.get(IFA_ADDRESS))
    else:
        return None
    return None if address is None else AddressEvent(kind == RTM_NEWADDR, index, address)


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(type, flags, body) of each message in one datagram."""
    at = 0
    while at + NLMSG.size <= len(data):
        length, kind, flags, _seq, _pid = NLMSG.unpack_from(data, at)
        if length < NLMSG.size:
            break
        yield kind, flags, data[at + NLMSG.size:at + length]
        at += (length + 3) & ~3


def parse(kind: int, body: bytes) -> Event | None:
    if kind in (RTM_NEWLINK, RTM_DELLINK):
        return parse_link(kind, body)
    if kind in (RTM_NEWADDR, RTM_DELADDR):
        return parse_address(kind, body)
    return None


def _open() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


class Reader:
    """Event queue and dumps of the network namespace in which it is made."""

    def __init__(self) -> None:
        self.sock = _open()
        with contextlib.suppress(PermissionError):
            self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
        self.sock.bind((0, GROUP_LINK | GROUP_IPV4_ADDR | GROUP_IPV6_ADDR))
        self.sock.setblocking(False)

    def drain(self) -> list[Event] | None:
        """The queued events in order; None when some were lost (the rest is thrown away: it may be stale)."""
        events: list[Event] = []
        lost = False
        while True:
            try:
                data = self.sock.recv(BUFFER)
            except BlockingIOError:
                return None if lost else events
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                lost = True
                continue
            for kind, _flags, body in messages(data):
                event = parse(kind, body)
                if event is not None:
                    events.append(event)

    def dump(self) -> list[Event]:
        """All links, then all IPv4, then all IPv6 addresses: the order in which the RDMA core walks them."""
        found: list[Event] = []
        for request, body in (
            (RTM_GETLINK, IFINFO.pack(socket.AF_UNSPEC, 0, 0, 0, 0)),
            (RTM_GETADDR, IFADDR.pack(socket.AF_INET, 0, 0, 0, 0)),
            (RTM_GETADDR, IFADDR.pack(socket.AF_INET6, 0, 0, 0, 0)),
        ):
            for _attempt in range(5):
                events, whole = self._dump_one(request, body)
                if whole:
                    break
            found += events
        return found

    @staticmethod
    def _dump_one(request: int, body: bytes) -> tuple[list[Event], bool]:
        """One dump; false when the table changed meanwhile and the answer may have holes."""
        events: list[Event] = []
        whole = True
        with _open() as sock:
            sock.settimeout(5)
            sock.send(NLMSG.pack(NLMSG.size + len(body), request, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)
            while True:
                for kind, flags, data in messages(sock.recv(BUFFER)):
                    whole = whole and not flags & NLM_F_DUMP_INTR
                    if kind == NLMSG_DONE:
                        return events, whole
                    if kind == NLMSG_ERROR:
                        code = -struct.unpack_from("=i", data)[0]
                        raise OSError(code, f"rtnetlink dump {request} refused")
                    event = parse(kind, data)
                    if event is not None:
                        events.append(event)
