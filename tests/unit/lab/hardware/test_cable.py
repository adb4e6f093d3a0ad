# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from lab.hardware import cable


class Kernel:
    """SIOCGIFFLAGS and SIOCSIFFLAGS over a table of links."""

    def __init__(self) -> None:
        self.flags = {"h-r0": 0x1003, "h-r1": 0x1002}
        self.seen: list[tuple[str, int]] = []

    def ioctl(self, _sock: Any, request: int, data: bytes) -> bytes:
        raw, flags = struct.unpack(cable.REQUEST, data)
        name = raw.rstrip(b"\0").decode()
        if name not in self.flags:
            raise OSError(19, "No such device")
        if request == cable.SIOCSIFFLAGS:
            self.flags[name] = flags
            self.seen.append((name, flags & cable.IFF_UP))
        return struct.pack(cable.REQUEST, raw, self.flags[name])


def test_a_toggle_goes_down_and_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    slept: list[float] = []
    monkeypatch.setattr(cable.fcntl, "ioctl", kernel.ioctl)
    monkeypatch.setattr(cable.time, "sleep", slept.append)
    cables = cable.Cables(None, ["h-r0", "h-r1", "gone"])  # type: ignore[arg-type]
    for rail in range(4):
        cables.toggle(rail)
    for thread in threading.enumerate():
        if thread.name == "toggle":
            thread.join(5)
    # An end that is down already stays so, one that is gone is no error.
    assert kernel.seen == [("h-r0", 0), ("h-r0", 1)] and slept == [cable.DOWN_SECONDS]
    assert kernel.flags == {"h-r0": 0x1003, "h-r1": 0x1002}
