# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The system calls the lab needs and Python 3.11 lacks, through ctypes.

Each raises OSError with the kernel's errno and a text that names the call and its arguments.
"""
from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_MOVE = 8192
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
MS_RELATIME = 1 << 21

MNT_FORCE = 1
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24

AT_FDCWD = -100
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
# Newer calls have one number on all machines.
OPEN_TREE = 428
MOVE_MOUNT = 429

# pivot_root has no wrapper in the C library.
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}


@cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> int:
    """Turn -1 into an OSError that says which call it was."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")
    return result


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def mount(source: str | None, target: str, fstype: str | None, flags: int = 0, data: str | None = None) -> None:
    """mount(2)."""
    result = libc().mount(_bytes(source), _bytes(target), _bytes(fstype), ctypes.c_ulong(flags), _bytes(data))
    _check(result, f"mount({source!r}, {target!r}, {fstype!r}, {flags:#x}, {data!r})")


def umount2(target: str, flags: int = 0) -> None:
    """umount2(2)."""
    _check(libc().umount2(_bytes(target), flags), f"umount2({target!r}, {flags:#x})")


def unshare(flags: int) -> None:
    """unshare(2)."""
    _check(libc().unshare(flags), f"unshare({flags:#x})")


def setns(fd: int, nstype: int = 0) -> None:
    """setns(2)."""
    _check(libc().setns(fd, nstype), f"setns({fd}, {nstype:#x})")


def pivot_root(new_root: str, put_old: str) -> None:
    """pivot_root(2)."""
    call = f"pivot_root({new_root!r}, {put_old!r})"
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, f"{call}: system call number not known for {platform.machine()}")
    _check(libc().syscall(ctypes.c_long(number), _bytes(new_root), _bytes(put_old)), call)


def _prctl(name: str, option: int, value: int) -> int:
    zero = ctypes.c_ulong(0)
    result: int = libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero)
    return _check(result, f"prctl({name}, {value})")


def capbset_drop(capability: int) -> None:
    """Take one capability out of the bounding set for good (PR_CAPBSET_DROP)."""
    _prctl("PR_CAPBSET_DROP", PR_CAPBSET_DROP, capability)


def capbset_read(capability: int) -> bool:
    """Whether the bounding set holds a capability; EINVAL for one this kernel does not know."""
    return _prctl("PR_CAPBSET_READ", PR_CAPBSET_READ, capability) == 1


def set_pdeathsig(signal: int) -> None:
    """Have the kernel send this process ``signal`` when its parent thread ends (PR_SET_PDEATHSIG)."""
    _prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal)


def set_name(name: str) -> None:
    """Give the calling thread a name of at most 15 bytes, as ps and /proc/PID/comm show it (PR_SET_NAME)."""
    zero = ctypes.c_ulong(0)
    result: int = libc().prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), zero, zero, zero)
    _check(result, f"prctl(PR_SET_NAME, {name!r})")


def inotify_init() -> int:
    """inotify_init1(2) with IN_CLOEXEC; the descriptor."""
    return _check(libc().inotify_init1(os.O_CLOEXEC), "inotify_init1(IN_CLOEXEC)")


def open_tree(path: str) -> int:
    """open_tree(2): a detached copy of the mount at ``path``, to be put elsewhere with ``move_mount``."""
    call = f"open_tree({path!r}, OPEN_TREE_CLONE)"
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC
    return _check(libc().syscall(ctypes.c_long(OPEN_TREE), AT_FDCWD, _bytes(path), flags), call)


def move_mount(fd: int, target: str) -> None:
    """move_mount(2): put a detached mount on ``target``, in whatever mount namespace this thread is now."""
    call = f"move_mount({fd}, {target!r})"
    _check(libc().syscall(ctypes.c_long(MOVE_MOUNT), fd, b"", AT_FDCWD, _bytes(target), MOVE_MOUNT_F_EMPTY_PATH), call)
