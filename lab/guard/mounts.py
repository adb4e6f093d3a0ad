# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides about each new mount in a host, from outside: the kernel asks before it lets the call go on.

The kernel's filter sees numbers only, so the type of the file system, which is behind a pointer, is
read here (seccomp_unotify(2)). A process that changes the text between our look and the kernel's gets
past; that takes intent, and the lab guards against accidents.
"""
from __future__ import annotations

import errno
import fcntl
import os
import platform
import select
import struct

from lab.guard import filter as call_filter

RECEIVE, SEND, STILL_VALID = 0xC0502100, 0xC0182101, 0x40082102
CONTINUE = 1
NOTICE, ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
# File systems that belong to who mounts them, or to a namespace of the host. Not among them, for example:
# proc and sysfs (a fresh one shows the machine's settings, writable), devtmpfs (its disks), cgroup version 1
# (its groups), debugfs, tracefs, configfs, securityfs, binfmt_misc, bpf; unknown types load kernel modules.
ALLOWED = {
    "autofs", "cgroup2", "devpts", "fuse", "hugetlbfs", "mqueue", "nfs", "nfs4", "overlay", "ramfs", "tmpfs",
}
LONGEST_NAME_BYTES = 32


def makes_new(flags: int) -> bool:
    """Whether mount(2) with ``flags`` mounts a file system and not only changes how one is shared."""
    magic = flags & call_filter.MAGIC_MASK == call_filter.MAGIC
    return magic or not flags & call_filter.PROPAGATION


def allowed(name: str) -> bool:
    return name.split(".", 1)[0] in ALLOWED  # fuse.sshfs is fuse


def read_text(pid: int, address: int) -> str:
    """The text at ``address`` of process ``pid``, at most a file system's name long."""
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Up to the end of the page: the next one need not be there.
        first = min(LONGEST_NAME_BYTES, 4096 - address % 4096)
        data = os.pread(fd, first, address)
        if b"\0" not in data and first < LONGEST_NAME_BYTES:
            data += os.pread(fd, LONGEST_NAME_BYTES - first, address + first)
    finally:
        os.close(fd)
    return data.split(b"\0", 1)[0].decode("latin-1")


def answer(listener: int) -> None:
    """Take one question from ``listener`` and answer it. Raises OSError (ENOENT) when the asker is gone."""
    notice = bytearray(NOTICE.size)
    fcntl.ioctl(listener, RECEIVE, notice)
    identity, pid, _flags, call, _architecture, _ip, *arguments = NOTICE.unpack(notice)
    new_call = call == call_filter.number("fsopen", platform.machine())
    address = arguments[0 if new_call else 2]
    try:
        # A null pointer is for the kernel to refuse.
        good = address == 0 or not new_call and not makes_new(arguments[3]) or allowed(read_text(pid, address))
        code = 0 if good else errno.EPERM
    except OSError:
        code = errno.EFAULT
    fcntl.ioctl(listener, STILL_VALID, struct.pack("=Q", identity))
    fcntl.ioctl(listener, SEND, bytearray(ANSWER.pack(identity, 0, -code, 0 if code else CONTINUE)))


def serve(listener: int) -> None:
    """Answer until no process with the filter is left; afterwards, or after an error, new mounts are ENOSYS."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    try:
        while True:
            event = poll.poll()[0][1]
            if event & select.POLLIN:
                try:
                    answer(listener)
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        raise
            else:
                return
    finally:
        # Open and unread, it would hang whoever mounts.
        os.close(listener)
