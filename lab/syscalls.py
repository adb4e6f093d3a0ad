# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Linux system calls that Python 3.11 has no function for. Numbers: linux/{sched,mount,prctl}.h."""
from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | bytes | None) -> int:
    """Call ``name``; a failure is an OSError that names the call and its arguments."""
    result: int = getattr(_libc, name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        shown = ", ".join(os.fsdecode(a) if isinstance(a, bytes) else repr(a) for a in arguments)
        raise OSError(number, f"{name}({shown}): {os.strerror(number)}")
    return result


def _text(value: str) -> bytes | None:
    return os.fsencode(value) if value else None


def mount(source: str, target: str, fstype: str, flags: int = 0, data: str = "") -> None:
    """mount(2); empty texts are passed as NULL."""
    _call("mount", _text(source), os.fsencode(target), _text(fstype), flags, _text(data))


def umount2(target: str, flags: int = 0) -> None:
    _call("umount2", os.fsencode(target), flags)


def unshare(flags: int) -> None:
    _call("unshare", flags)


def setns(fd: int, kind: int) -> None:
    _call("setns", fd, kind)


def pivot_into(root: str) -> None:
    """Make ``root`` (a mount point) the root of this mount namespace and let go of the old one.

    Old and new root may be the same folder: the old one is then stacked on top (pivot_root(2), NOTES).
    """
    os.chdir(root)
    _call("syscall", 155 if os.uname().machine == "x86_64" else 41, b".", b".")  # asm/unistd.h: pivot_root
    umount2(".", MNT_DETACH)
    os.chdir("/")


def set_parent_death_signal(number: int) -> None:
    """Have the kernel send signal ``number`` to this process when its parent ends."""
    _call("prctl", PR_SET_PDEATHSIG, number, 0, 0, 0)


def drop_bounding_capability(number: int) -> None:
    _call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)
