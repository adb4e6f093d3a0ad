# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter's program, run by an interpreter of classic BPF's four instructions."""
from __future__ import annotations

import errno
import struct

import pytest

from lab.guard import filter as call_filter

ALLOW, ASK = call_filter.ALLOW, call_filter.NOTIFY


def refused(code: int) -> int:
    return call_filter.ERRNO | code


def run(machine: str, call: int, arguments: tuple[int, ...] = (), architecture: int | None = None) -> int:
    wanted = call_filter.ARCHITECTURES[machine] if architecture is None else architecture
    data = struct.pack("<IIQ6Q", call, wanted, 0, *arguments, *[0] * (6 - len(arguments)))
    program, position, value = call_filter.program(machine), 0, 0
    while True:
        code, yes, no, k = program[position]
        position += 1
        if code == call_filter.LOAD:
            value = struct.unpack_from("<I", data, k)[0]
        elif code == call_filter.RETURN:
            return k
        else:
            test = {call_filter.JUMP_EQUAL: value == k, call_filter.JUMP_SET: bool(value & k),
                    call_filter.JUMP_GREATER_EQUAL: value >= k}[code]
            position += yes if test else no


@pytest.mark.parametrize("machine", call_filter.ARCHITECTURES)
@pytest.mark.parametrize("name", call_filter.REFUSED)
def test_refused(machine: str, name: str) -> None:
    call = call_filter.number(name, machine)
    if call is not None:
        assert run(machine, call) == refused(errno.EPERM)


@pytest.mark.parametrize("machine", call_filter.ARCHITECTURES)
def test_mounts_are_asked_about(machine: str) -> None:
    mount, fsopen = (call_filter.number(name, machine) or 0 for name in ("mount", "fsopen"))
    assert run(machine, fsopen) == ASK
    assert run(machine, mount, (1, 2, 3, 0)) == run(machine, mount, (1, 2, 3, 0xC0ED0000)) == ASK
    for flag in (4096, 4096 | 16384, 32, 32 | 4096 | 1, 8192):  # bind, rbind, remount, remount-bind-ro, move
        assert run(machine, mount, (1, 2, 3, flag)) == ALLOW


@pytest.mark.parametrize("machine", call_filter.ARCHITECTURES)
def test_sockets_and_all_the_rest(machine: str) -> None:
    new_socket = call_filter.number("socket", machine) or 0
    assert run(machine, new_socket, (40, 1, 0)) == refused(errno.EAFNOSUPPORT)
    assert run(machine, new_socket, (2, 1, 0)) == ALLOW
    numbers = {call_filter.number(name, machine) for name in call_filter.NUMBERS}
    assert all(run(machine, call) == ALLOW for call in range(500) if call not in numbers)


def test_no_way_around_by_another_numbering() -> None:
    assert run("x86_64", 0, architecture=0x40000003) == refused(errno.EPERM)  # i386
    assert run("x86_64", 0x40000000 + 165) == refused(errno.EPERM)  # x32


def test_every_new_mount_can_be_refused_without_asking() -> None:
    assert ASK not in {k for code, _yes, _no, k in call_filter.program("x86_64", notify=False)
                       if code == call_filter.RETURN}
