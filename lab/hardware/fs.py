# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The FUSE file system: the emulated tree, and the real links of the host through it.

sysfs' manners (simulation.md, "Kernel ABI facts seen live"): a size of 4096 whatever is in a file, no
caching, O_TRUNC without effect, EACCES where somebody tries to make or remove a file.
"""
from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mfusepy

from lab.hardware.model import Node
from lab.hardware.tree import Entry, File, Link, Real, build

SIZE = 4096


def fail(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class Hardware(mfusepy.Operations):
    use_ns = True

    def __init__(self, node: Node, sysfs: Path) -> None:
        self._entries = build(node)
        self._rails = {port.rail.netdev: f"../../{port.rail.pci_path}/net/{port.rail.netdev}"
                       for port in node.ports.values()}
        self._net = sysfs / "class" / "net"
        self._children: dict[str, set[str]] = {"": {"net"}}
        self._started = time.time_ns()
        for path in self._entries:
            while path:
                parent, _slash, name = path.rpartition("/")
                self._children.setdefault(parent, set()).add(name)
                path = parent

    def _find(self, path: str) -> Entry | set[str] | Path:
        """What is at ``path``: an entry, a folder's names, or a place in the real sysfs."""
        name = path.strip("/")
        if name in self._entries:
            entry = self._entries[name]
            return Path(entry.path) if isinstance(entry, Real) else entry
        if name in self._children:
            return self._children[name]
        if name == "net":
            return set(os.listdir(self._net))
        if name.startswith("net/"):
            return self._network_link(name[4:])
        return self._behind(name)

    def _network_link(self, name: str) -> Link | Path:
        """An entry of class/net: rails hang below their PCI function, others where the kernel has them."""
        real = self._net / name
        if not real.is_symlink():
            if "/" in name or not real.exists():
                raise fail(errno.ENOENT)
            return real  # bonding_masters is a file
        return Link(self._rails.get(name) or os.readlink(real))

    def _behind(self, name: str) -> Link | Path:
        """Something inside a real netdev's folder."""
        parent, _slash, rest = name.rpartition("/net/")
        interface, _slash, inside = rest.partition("/")
        entry = self._entries.get(f"{parent}/net/{interface}")
        if not isinstance(entry, Real) or not inside:
            raise fail(errno.ENOENT)
        if inside in entry.links:
            return Link(entry.links[inside])
        return Path(entry.path) / inside

    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        found = self._find(path)
        if isinstance(found, Path):
            return self._real_attributes(found)
        if isinstance(found, set):
            return self._attributes(stat.S_IFDIR | 0o755, 0)
        if isinstance(found, Link):
            return self._attributes(stat.S_IFLNK | 0o777, len(found.target))
        assert isinstance(found, File)
        return self._attributes(stat.S_IFREG | found.mode, SIZE)

    def _attributes(self, mode: int, size: int) -> dict[str, Any]:
        return {"st_mode": mode, "st_nlink": 2 if stat.S_ISDIR(mode) else 1, "st_size": size, "st_uid": 0, "st_gid": 0,
                "st_atime": self._started, "st_mtime": self._started, "st_ctime": self._started}

    def _real_attributes(self, path: Path) -> dict[str, Any]:
        # The rail's own folder is a link in class/net; everything below it is taken as it is.
        found = os.stat(path) if path.parent == self._net else os.lstat(path)
        return self._attributes(found.st_mode, found.st_size)

    def readdir(self, path: str, fh: Any) -> Iterable[str]:
        found = self._find(path)
        if isinstance(found, Path):
            entry = self._entries.get(path.strip("/"))
            extra = set(entry.links) if isinstance(entry, Real) else set()
            found = set(os.listdir(found)) | extra
        if not isinstance(found, set):
            raise fail(errno.ENOTDIR)
        return [".", "..", *sorted(found)]

    def readlink(self, path: str) -> str:
        found = self._find(path)
        if isinstance(found, Link):
            return found.target
        if isinstance(found, Path):
            return os.readlink(found)
        raise fail(errno.EINVAL)

    def open(self, path: str, flags: Any) -> int:
        found = self._find(path)
        if isinstance(found, File) and flags.flags & os.O_ACCMODE != os.O_RDONLY and not found.mode & 0o222:
            raise fail(errno.EACCES)
        flags.direct_io = 1
        return 0

    def read(self, path: str, size: int, offset: int, fh: Any) -> bytes:
        found = self._find(path)
        if isinstance(found, File):
            return found.show()[offset:offset + size]
        assert isinstance(found, Path)
        descriptor = os.open(found, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, size, offset)
        finally:
            os.close(descriptor)

    def write(self, path: str, data: bytes, offset: int, fh: Any) -> int:
        found = self._find(path)
        if not isinstance(found, Path):
            raise fail(errno.EINVAL)
        descriptor = os.open(found, os.O_WRONLY | os.O_CLOEXEC)
        try:
            return os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def truncate(self, path: str, length: int, fh: Any = None) -> int:
        self._find(path)
        return 0

    def _refuse(self, *_arguments: Any, **_keywords: Any) -> int:
        raise fail(errno.EACCES)

    create = mkdir = mknod = symlink = link = unlink = rmdir = rename = chmod = chown = _refuse

    def utimens(self, path: str, times: Any = None) -> int:
        return 0
