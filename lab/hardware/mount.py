# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher's half of a FUSE mount whose server runs outside of the host.

The host's first process mounts in its own namespace and hands the descriptor over; the server never
enters the host. Only the server may keep the descriptor: with a copy anywhere else a dead server's
readers would wait for ever; without one they get ENOTCONN (simulation.md 0b.4).
"""
from __future__ import annotations

import os
import socket

from lab import syscalls as sc


def mount_and_send(target: str, server: socket.socket) -> None:
    """Mount FUSE at ``target`` and give the descriptor to the process at the other end of ``server``."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        data = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        sc.mount("hardware", target, "fuse", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC, data)
        socket.send_fds(server, [b"fuse"], [fd])
    finally:
        os.close(fd)
        server.close()


def receive(server: socket.socket) -> int:
    """The server's half: wait for the descriptor."""
    message, fds, _flags, _address = socket.recv_fds(server, 16, 1)
    if message != b"fuse" or len(fds) != 1:
        raise OSError(f"the launcher sent {message!r} with {len(fds)} descriptors, wanted one FUSE descriptor")
    return fds[0]
