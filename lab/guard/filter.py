# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The system call filter that every process of a host inherits: classic BPF, without libseccomp.

Source: Documentation/userspace-api/seccomp_filter.rst, linux/seccomp.h, linux/filter.h.
"""
from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from lab import syscalls as sc

# name -> number on x86_64, on aarch64 and riscv64 (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h)
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "clock_settime": (227, 112),
    "delete_module": (176, 106), "finit_module": (313, 273), "fsopen": (430, 430), "init_module": (175, 105),
    "ioperm": (173, None), "iopl": (172, None), "kexec_file_load": (320, 294), "kexec_load": (246, 104),
    "keyctl": (250, 219), "mount": (165, 40), "open_by_handle_at": (304, 265), "perf_event_open": (298, 241),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "request_key": (249, 218), "settimeofday": (164, 170),
    "socket": (41, 198), "swapoff": (168, 225), "swapon": (167, 224),
}
# Answered with EPERM, whatever the arguments: each acts on the machine and not on a namespace.
# add_key, keyctl, request_key: root's keys are one set for all hosts and the machine.
# open_by_handle_at: finds any file of a file system of which one file is known.
REFUSED = (
    "acct", "add_key", "bpf", "clock_settime", "delete_module", "finit_module",
    "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "keyctl", "open_by_handle_at",
    "perf_event_open", "quotactl", "quotactl_fd", "request_key", "settimeofday", "swapoff", "swapon",
)
# Not adjtimex: timedatectl reads with it; CAP_SYS_TIME, which hosts lack, guards the writing.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
X32_BIT = 0x40000000
AF_VSOCK = 40
# These use what is mounted already (linux/mount.h). Changes of propagation do, too, but their bits mean nothing
# in a call with the old magic number in its upper half.
NO_NEW_MOUNT = sc.MS_REMOUNT | sc.MS_BIND | sc.MS_MOVE
PROPAGATION = 1 << 17 | sc.MS_PRIVATE | sc.MS_SLAVE | sc.MS_SHARED
MAGIC, MAGIC_MASK = 0xC0ED0000, 0xFFFF0000

LOAD, JUMP_EQUAL, JUMP_SET, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
ALLOW, NOTIFY, ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16

SET_MODE_FILTER, NEW_LISTENER = 1, 8
SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277}

Instruction = tuple[int, int, int, int]


def number(name: str, machine: str) -> int | None:
    return NUMBERS[name][0 if machine == "x86_64" else 1]


def program(machine: str, notify: bool = True) -> list[Instruction]:
    """The filter for ``machine`` (as uname -m); without ``notify`` all new mounts are refused."""
    refuse = (RETURN, 0, 0, ERRNO | errno.EPERM)
    ask = (RETURN, 0, 0, NOTIFY) if notify else refuse
    allow = (RETURN, 0, 0, ALLOW)
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_AT), (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]), refuse, (LOAD, 0, 0, NUMBER_AT),
    ]
    if machine == "x86_64":
        code += [(JUMP_GREATER_EQUAL, 0, 1, X32_BIT), refuse]
    for name in REFUSED:
        call = number(name, machine)
        if call is not None:
            code += [(JUMP_EQUAL, 0, 1, call), refuse]
    fsopen, mount, new_socket = (number(name, machine) or 0 for name in ("fsopen", "mount", "socket"))
    return [
        *code,
        (JUMP_EQUAL, 0, 1, fsopen), ask,
        (JUMP_EQUAL, 0, 4, mount), (LOAD, 0, 0, ARGUMENTS_AT + 3 * 8), (JUMP_SET, 0, 1, NO_NEW_MOUNT), allow, ask,
        (JUMP_EQUAL, 0, 3, new_socket), (LOAD, 0, 0, ARGUMENTS_AT), (JUMP_EQUAL, 0, 1, AF_VSOCK),
        (RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT),
        allow,
    ]


def install() -> int:
    """Put the filter on the calling process for good; the descriptor on which new mounts are asked about."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"seccomp filter: no system call numbers for {machine}")
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program(machine))
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    result = sc.libc().syscall(ctypes.c_long(SECCOMP[machine]), ctypes.c_uint(SET_MODE_FILTER),
                               ctypes.c_uint(NEW_LISTENER), ctypes.c_char_p(header))
    if result == -1:
        code_number = ctypes.get_errno()
        raise OSError(code_number, f"seccomp(SECCOMP_SET_MODE_FILTER): {os.strerror(code_number)}")
    return int(result)
