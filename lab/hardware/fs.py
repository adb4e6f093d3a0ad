# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated tree as FUSE operations, with sysfs's manners (simulation.md 3 "Kernel ABI facts", 4).

What the kernel's sysfs answers was tried on 6.18: create and mknod EACCES; mkdir, unlink, rmdir, rename, link and
symlink EPERM; truncation succeeds and does nothing; a write to a file that nobody may write EACCES, to root too.
"""
from __future__ import annotations

import errno
import functools
import itertools
import os
import stat
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import mfusepy

from lab.hardware.model import Node as Model
from lab.hardware.nodes import Dir, File, Link, Node, fail
from lab.hardware.tree import build

Operation = TypeVar("Operation", bound=Callable[..., Any])


def locked(operation: Operation) -> Operation:
    """Keep the control door's thread out of the model for the time of one request."""
    @functools.wraps(operation)
    def one_at_a_time(self: HardwareFS, *args: Any, **kwargs: Any) -> Any:
        with self.mutex:
            return operation(self, *args, **kwargs)

    return cast(Operation, one_at_a_time)


def caller_is_root() -> bool:
    """Whether the present request is root's (hosts have no user namespace, so root is 0)."""
    return bool(mfusepy.fuse_get_context()[0] == 0)


class Handle:
    """An open file: sysfs makes an attribute's text at the first read and serves the rest from it."""

    def __init__(self, node: File) -> None:
        self.node = node
        self.data: bytes | None = None

    def read(self, size: int, offset: int) -> bytes:
        if self.data is None or offset == 0 or not self.node.snapshot:
            self.data = self.node.read()
        return self.data[offset:offset + size]


class HardwareFS(mfusepy.Operations):
    """One host's hardware; each request first takes over what happened in the network namespace."""

    use_ns = True

    def __init__(self, model: Model, lock: threading.Lock | None = None) -> None:
        self.model = model
        self.mutex = lock or threading.Lock()  # not "lock": that is a FUSE operation's name
        self.generation, self.root = model.state.generation, build(model, caller_is_root)
        self.now = time.time_ns()
        self.handles: dict[int, Handle] = {}
        self.numbers = itertools.count(1)

    def _node(self, path: str) -> Node:
        self.model.refresh()
        if self.generation != self.model.state.generation:
            self.generation, self.root = self.model.state.generation, build(self.model, caller_is_root)
        node: Node = self.root
        for name in path.split("/"):
            if name:
                if not isinstance(node, Dir):
                    raise fail(errno.ENOTDIR)
                node = node.child(name)
        return node

    def _parent(self, path: str) -> tuple[Dir, str]:
        above, _slash, name = path.rpartition("/")
        parent = self._node(above)
        if not isinstance(parent, Dir):
            raise fail(errno.ENOTDIR)
        return parent, name

    @locked
    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        node = self._node(path)
        return {"st_mode": node.mode, "st_size": node.size, "st_nlink": 2 if isinstance(node, Dir) else 1,
                "st_uid": 0, "st_gid": 0, "st_atime": self.now, "st_mtime": self.now, "st_ctime": self.now}

    @locked
    def readdir(self, path: str, fh: int) -> list[tuple[str, int, int]]:
        node = self._node(path)
        if not isinstance(node, Dir):
            raise fail(errno.ENOTDIR)
        # The type must be right: systemd skips entries of class directories that are neither link nor directory.
        entries = [(".", stat.S_IFDIR, 0), ("..", stat.S_IFDIR, 0)]
        for name in node.names():
            try:
                entries.append((name, stat.S_IFMT(node.child(name).mode), 0))
            except OSError:
                continue  # went away meanwhile
        return entries

    @locked
    def readlink(self, path: str) -> str:
        node = self._node(path)
        if not isinstance(node, Link):
            raise fail(errno.EINVAL)
        return node.target

    @locked
    def open(self, path: str, flags: int) -> int:
        node = self._node(path)
        if not isinstance(node, File):
            raise fail(errno.EISDIR)
        node.check_open(flags)
        number = next(self.numbers)
        self.handles[number] = Handle(node)
        return number

    @locked
    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        self.model.refresh()
        return self.handles[fh].read(size, offset)

    @locked
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self.handles[fh].node.write(data, offset)
        return len(data)

    def release(self, path: str, fh: int) -> int:
        self.handles.pop(fh, None)
        return 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        raise fail(errno.EACCES)

    def mknod(self, path: str, mode: int, dev: int) -> int:
        raise fail(errno.EACCES)

    @locked
    def mkdir(self, path: str, mode: int) -> int:
        parent, name = self._parent(path)
        parent.make_dir(name)
        return 0

    def unlink(self, path: str) -> int:
        raise fail(errno.EPERM)

    @locked
    def rmdir(self, path: str) -> int:
        parent, name = self._parent(path)
        parent.remove_dir(name)
        return 0

    def rename(self, old: str, new: str) -> int:
        raise fail(errno.EPERM)

    def symlink(self, target: str, source: str) -> int:
        raise fail(errno.EPERM)

    def link(self, target: str, source: str) -> int:
        raise fail(errno.EPERM)


def serve(model: Model, fd: int, lock: threading.Lock | None = None) -> None:
    """Answer for an already mounted FUSE descriptor until the mount is gone.

    libfuse takes ``/dev/fd/N`` as "mounted already": it parses no mount options, calls no fusermount and does not
    unmount at the end (simulation.md 0b.4).
    """
    os.set_inheritable(fd, False)
    # Without any caching each attribute costs a question for each part of its path: 1,020 GIDs took 1.9 s
    # instead of 0.2 s. Contents are never cached (direct_io).
    mfusepy.FUSE(HardwareFS(model, lock), f"/dev/fd/{fd}", foreground=True, nothreads=True, direct_io=True,
                 attr_timeout=0.2, entry_timeout=0.2, negative_timeout=0)
