# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables of a host's rails, by their far ends: a port that toggles its link loses the carrier at both ends.

The far end is taken down and up, not the host's: the host's own end stays administratively up, so that its kernel keeps
addresses and routes as it does on a real carrier loss (mlx5-roce 4.8).
"""
from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading
import time
from collections.abc import Sequence

from lab import syscalls

# linux/sockios.h, linux/if.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
REQUEST = "16sH14x"
# "Expect seconds of carrier loss" (mlx5-roce 4.3); short, so that tests are.
DOWN_SECONDS = 1.0


def socket_in(namespace: str) -> socket.socket:
    """A socket that acts in another network namespace for as long as it is open."""
    own, other = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in ("/proc/self/ns/net", namespace))
    try:
        syscalls.setns(other, syscalls.CLONE_NEWNET)
        try:
            return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        finally:
            syscalls.setns(own, syscalls.CLONE_NEWNET)
    finally:
        os.close(own)
        os.close(other)


class Cables:
    """``names`` are the far ends in rail order, in the namespace that ``sock`` acts in."""

    def __init__(self, sock: socket.socket, names: Sequence[str]) -> None:
        self.sock, self.names = sock, names
        self.locks = [threading.Lock() for _name in names]

    def toggle(self, rail: int) -> None:
        """Down and, after a moment, up again. Returns at once; an end that a fault keeps down stays so."""
        if rail < len(self.names):
            threading.Thread(target=self._toggle, args=(rail,), name="toggle", daemon=True).start()

    def _flags(self, name: str) -> int:
        answer = fcntl.ioctl(self.sock, SIOCGIFFLAGS, struct.pack(REQUEST, name.encode(), 0))
        return int(struct.unpack(REQUEST, answer)[1])

    def _set(self, name: str, flags: int) -> None:
        fcntl.ioctl(self.sock, SIOCSIFFLAGS, struct.pack(REQUEST, name.encode(), flags))

    def _toggle(self, rail: int) -> None:
        name = self.names[rail]
        with self.locks[rail]:
            try:
                flags = self._flags(name)
                if not flags & IFF_UP:
                    return
                self._set(name, flags & ~IFF_UP)
                time.sleep(DOWN_SECONDS)
                self._set(name, self._flags(name) | IFF_UP)
            except OSError:
                return  # the cable was taken away meanwhile
