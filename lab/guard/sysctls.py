# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's own /proc/sys as FUSE operations.

Keys that the kernel keeps per UTS, IPC or network namespace are the kernel's own: reads, writes and
errno pass through, because the process that answers is in these namespaces of the host. Any other
key is read from the machine and written to a dictionary that is gone with the next boot
(simulation.md 2, pitfall 1). What may not exist or be made answers as on 6.18 (tried): create ENOENT,
unlink EACCES, chmod EPERM, opening a file for writing that nobody may write EACCES.
"""
from __future__ import annotations

import errno
import itertools
import os
import stat
import time
import uuid
from collections.abc import Callable
from typing import Any

import mfusepy

from lab import syscalls as sc
from lab.guard import rules

TOP = "/proc/sys"
# Per UTS or IPC namespace (kernel/utsname_sysctl.c, ipc/ipc_sysctl.c, ipc/mq_sysctl.c).
NAMESPACED = {
    "kernel/hostname", "kernel/domainname", "kernel/auto_msgmni", "kernel/msg_next_id", "kernel/msgmax",
    "kernel/msgmnb", "kernel/msgmni", "kernel/sem", "kernel/sem_next_id", "kernel/shm_next_id",
    "kernel/shm_rmid_forced", "kernel/shmall", "kernel/shmmax", "kernel/shmmni",
}
# The machine's programs for foreign binaries would be the host's to set, for all.
HIDDEN = {"fs/binfmt_misc"}
CAP_NET_ADMIN = 12
BOOT_ID = "kernel/random/boot_id"


def fail(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def read_file(path: str) -> str:
    with open(path, encoding="latin-1", newline="") as file:
        return file.read()


def walk(top: str) -> dict[str, int]:
    """key -> mode of every file below ``top``, a directory of /proc/sys."""
    found = {}
    for base, _dirs, names in os.walk(top):
        for name in names:
            path = os.path.join(base, name)
            found[path[len(TOP) + 1:]] = os.lstat(path).st_mode
    return found


def of_interface(key: str) -> bool:
    """Whether a key below net/ belongs to one interface."""
    parts = key.split("/")
    return len(parts) > 4 and parts[2] in ("conf", "neigh") and parts[3] not in ("all", "default")


def missing_keys(machine: dict[str, int], host: dict[str, int]) -> set[str]:
    """Keys of the machine's network namespace that the host's lacks, or has but may not write."""
    return {key for key, mode in machine.items()
            if not of_interface(key) and (key not in host or mode & 0o222 & ~host[key])}


def read_machines_net(host_netns: str) -> dict[str, tuple[int, str]]:
    """Mode and value of the net keys that have to be emulated; leaves the thread in ``host_netns``."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(host_netns, os.O_RDONLY | os.O_CLOEXEC)
    machine = walk(f"{TOP}/net")
    sc.setns(there, sc.CLONE_NEWNET)
    host = walk(f"{TOP}/net")
    sc.setns(own, sc.CLONE_NEWNET)
    found = {}
    for key in sorted(missing_keys(machine, host)):
        text = read_file(f"{TOP}/{key}") if machine[key] & 0o444 else ""
        found[key] = (machine[key], text)
    sc.setns(there, sc.CLONE_NEWNET)
    os.close(own)
    os.close(there)
    return found


class Caller:
    """Who asks; ``proc`` is a descriptor of the host's /proc, in whose numbers FUSE gives process ids."""

    def __init__(self, proc: int) -> None:
        self.proc = proc

    def identity(self) -> tuple[int, int]:
        uid, _gid, pid = mfusepy.fuse_get_context()
        return uid, pid

    def may_administrate_net(self, pid: int) -> bool:
        """networkd is not root and sets net keys by its capability (net/sysctl_net.c)."""
        try:
            fd = os.open(f"{pid}/status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.proc)
        except OSError:
            return False
        with open(fd, encoding="utf-8", errors="replace") as file:
            effective = next((line for line in file if line.startswith("CapEff:")), "CapEff: 0")
        return bool(int(effective.split()[1], 16) >> CAP_NET_ADMIN & 1)


class Key:
    """An open file."""

    def __init__(self, read: Callable[[], bytes], write: Callable[[bytes], int]) -> None:
        self.read, self.write = read, write
        self.data: bytes | None = None


class Sysctls(mfusepy.Operations):
    use_ns = True

    def __init__(self, net: dict[str, tuple[int, str]], caller: Caller, top: str = TOP) -> None:
        self.top, self.net, self.caller = top, net, caller
        self.values: dict[str, str] = {key: text for key, (_mode, text) in net.items()}
        self.values[BOOT_ID] = f"{uuid.uuid4()}\n"
        self.now = time.time_ns()
        self.handles: dict[int, Key] = {}
        self.numbers = itertools.count(1)
        self.net_dirs = {key.rsplit("/", depth)[0] for key in net for depth in range(1, key.count("/") + 1)}

    def mode(self, key: str) -> int:
        if key in HIDDEN:
            raise fail(errno.ENOENT)
        if key in self.net:
            return self.net[key][0]
        try:
            return os.lstat(f"{self.top}/{key}").st_mode
        except FileNotFoundError:
            if key in self.net_dirs:
                return stat.S_IFDIR | 0o555
            raise

    def real(self, key: str) -> bool:
        return key in NAMESPACED or key.startswith(("fs/mqueue/", "net/")) and key not in self.net

    def text(self, key: str) -> str:
        return self.values[key] if key in self.values else read_file(f"{self.top}/{key}")

    def store(self, key: str, data: bytes) -> int:
        current = self.text(key) if self.mode(key) & 0o444 else self.values.get(key, "0\n")
        taken = rules.store(key, current, data)
        self.values[key] = taken.text
        other = rules.COUPLED.get(key)
        if other is not None and taken.text != "0\n":
            self.values[other] = "0\n"
        return taken.used

    def store_real(self, key: str, data: bytes) -> int:
        fd = os.open(f"{self.top}/{key}", os.O_WRONLY)
        try:
            return os.write(fd, data)
        finally:
            os.close(fd)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        mode = self.mode(path[1:])
        return {"st_mode": mode, "st_size": 0, "st_nlink": 1, "st_uid": 0, "st_gid": 0,
                "st_atime": self.now, "st_mtime": self.now, "st_ctime": self.now}

    def readdir(self, path: str, fh: int) -> list[tuple[str, int, int]]:
        key = path[1:]
        prefix = f"{key}/" if key else ""
        try:
            names = set(os.listdir(f"{self.top}/{key}"))
        except FileNotFoundError:
            names = set()
        names |= {name[len(prefix):].split("/")[0] for name in self.net if name.startswith(prefix)}
        entries = [(".", stat.S_IFDIR, 0), ("..", stat.S_IFDIR, 0)]
        for name in sorted(names):
            try:
                entries.append((name, stat.S_IFMT(self.mode(prefix + name)), 0))
            except OSError:
                continue  # hidden, or an interface that went away
        return entries

    def check(self, key: str, wanted: int) -> None:
        """Raise EACCES unless the caller may; the mode counts for root, too (proc_sys_permission)."""
        mode = self.mode(key)
        uid, pid = self.caller.identity()
        owner = uid == 0 or key.startswith("net/") and self.caller.may_administrate_net(pid)
        if wanted & ~(mode >> 6 if owner else mode) & 7:
            raise fail(errno.EACCES)

    def access(self, path: str, amode: int) -> int:
        self.check(path[1:], amode)
        return 0

    def open(self, path: str, flags: int) -> int:
        key, wanted = path[1:], flags & os.O_ACCMODE
        self.check(key, {os.O_RDONLY: os.R_OK, os.O_WRONLY: os.W_OK}.get(wanted, os.R_OK | os.W_OK))
        number = next(self.numbers)
        store = self.store_real if self.real(key) else self.store
        self.handles[number] = Key(lambda: self.text(key).encode("latin-1"), lambda data: store(key, data))
        return number

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        handle = self.handles[fh]
        if handle.data is None or offset == 0:
            handle.data = handle.read()
        return handle.data[offset:offset + size]

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        # kernel.sysctl_writes_strict = 1: only what is written at the start counts.
        return len(data) if offset else self.handles[fh].write(data)

    def release(self, path: str, fh: int) -> int:
        self.handles.pop(fh, None)
        return 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        raise fail(errno.ENOENT)

    def mknod(self, path: str, mode: int, dev: int) -> int:
        raise fail(errno.ENOENT)

    def mkdir(self, path: str, mode: int) -> int:
        raise fail(errno.ENOENT)

    def symlink(self, target: str, source: str) -> int:
        raise fail(errno.ENOENT)

    def link(self, target: str, source: str) -> int:
        raise fail(errno.ENOENT)

    def rename(self, old: str, new: str) -> int:
        raise fail(errno.ENOENT)

    def unlink(self, path: str) -> int:
        raise fail(errno.EACCES)

    def rmdir(self, path: str) -> int:
        raise fail(errno.EACCES)

    def chmod(self, path: str, mode: int) -> int:
        raise fail(errno.EPERM)

    def chown(self, path: str, uid: int, gid: int) -> int:
        raise fail(errno.EPERM)


def serve(operations: Sysctls, fd: int) -> None:
    """Answer for a mounted FUSE descriptor until the mount is gone (simulation.md 0b.4)."""
    os.set_inheritable(fd, False)
    mfusepy.FUSE(operations, f"/dev/fd/{fd}", foreground=True, nothreads=True, direct_io=True,
                 attr_timeout=0.2, entry_timeout=0.2, negative_timeout=0)
