# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building blocks of the emulated tree: attributes, links, directories, and windows on the real sysfs."""
from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Mapping

FILE_SIZE = 4096  # what sysfs says of every attribute


def fail(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class Node:
    """Something with a mode."""

    mode = 0
    size = 0


class File(Node):
    """An attribute. What ``read`` returns is one snapshot: later parts of the same open file come from it."""

    size = FILE_SIZE
    snapshot = True

    def __init__(self, permissions: int = 0o444) -> None:
        self.mode = stat.S_IFREG | permissions

    def check_open(self, flags: int) -> None:
        """sysfs refuses an open for writing with EACCES, to root too, when nobody may write."""
        if flags & os.O_ACCMODE != os.O_RDONLY and not self.mode & 0o222:
            raise fail(errno.EACCES)

    def read(self) -> bytes:
        raise NotImplementedError

    def write(self, data: bytes, offset: int) -> None:
        raise fail(errno.EACCES)


class Attr(File):
    """An attribute of the model: text made by ``show``, taken by ``store``; both may raise OSError."""

    def __init__(self, show: str | Callable[[], str], store: Callable[[str], None] | None = None,
                 permissions: int = 0) -> None:
        super().__init__(permissions or (0o644 if store else 0o444))
        self.show = show
        self.store = store

    def read(self) -> bytes:
        text = self.show if isinstance(self.show, str) else self.show()
        return f"{text}\n".encode()

    def write(self, data: bytes, offset: int) -> None:
        if self.store is None:
            raise fail(errno.EACCES)
        self.store(data.decode("utf-8", "replace").strip())


class Link(Node):
    mode = stat.S_IFLNK | 0o777

    def __init__(self, target: str) -> None:
        self.target = target


class Dir(Node):
    """A directory: fixed children."""

    mode = stat.S_IFDIR | 0o755

    def __init__(self, children: Mapping[str, Node] | None = None) -> None:
        self.children: dict[str, Node] = dict(children or {})

    def names(self) -> Iterable[str]:
        return self.children

    def child(self, name: str) -> Node:
        try:
            return self.children[name]
        except KeyError:
            raise fail(errno.ENOENT) from None

    def make_dir(self, name: str) -> None:
        """mkdir of ``name`` in it: sysfs has none, configfs has."""
        raise fail(errno.EPERM)

    def remove_dir(self, name: str) -> None:
        """rmdir."""
        raise fail(errno.EPERM)


class ChangingDir(Dir):
    """Children that come and go: each with a condition that is asked at every look."""

    def __init__(self, children: Mapping[str, Node], present: Mapping[str, Callable[[], bool]]) -> None:
        super().__init__(children)
        self.present = present

    def names(self) -> Iterable[str]:
        return [name for name in self.children if name not in self.present or self.present[name]()]

    def child(self, name: str) -> Node:
        if name in self.present and not self.present[name]():
            raise fail(errno.ENOENT)
        return super().child(name)


class IndexDir(Dir):
    """Children named 0..n-1, made when asked: 255 GIDs times three files times four rails stay unallocated."""

    def __init__(self, length: int, make: Callable[[int], Node]) -> None:
        super().__init__()
        self.length = length
        self.make = make

    def names(self) -> Iterable[str]:
        return map(str, range(self.length))

    def child(self, name: str) -> Node:
        if not name.isascii() or not name.isdigit() or str(int(name)) != name or int(name) >= self.length:
            raise fail(errno.ENOENT)
        return self.make(int(name))


class RealFile(File):
    """An attribute of the real sysfs; the kernel's own answer and errno pass through."""

    def __init__(self, path: str, mode: int) -> None:
        super().__init__(stat.S_IMODE(mode))
        self.path = path

    def check_open(self, flags: int) -> None:
        super().check_open(flags)
        os.close(os.open(self.path, (flags & os.O_ACCMODE) | os.O_NOFOLLOW))

    def read(self) -> bytes:
        fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            parts = []
            while part := os.read(fd, 1 << 16):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def write(self, data: bytes, offset: int) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)


Translate = Callable[[str, str], str]


class RealDir(Dir):
    """A directory of the real sysfs, shown at another place: links are rewritten by ``translate(path, target)``."""

    def __init__(self, path: str, translate: Translate, extra: Mapping[str, Node] | None = None) -> None:
        super().__init__(extra)
        self.path = path
        self.translate = translate

    def names(self) -> Iterable[str]:
        return {*os.listdir(self.path), *self.children}

    def child(self, name: str) -> Node:
        if name in self.children:
            return self.children[name]
        path = os.path.join(self.path, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return Link(self.translate(path, os.readlink(path)))
        return RealDir(path, self.translate) if stat.S_ISDIR(mode) else RealFile(path, mode)


def translate_link(path: str, target: str, moved: Mapping[str, str]) -> str:
    """Rewrite a relative link of the real sysfs for the emulated tree.

    ``path`` of the link, ``target`` its text, ``moved`` real -> emulated directory; all relative to /sys.
    Both the link's place and what it points at may have moved (a macvlan's ``lower_X``, a bridge port).
    """
    def place(where: str) -> str:
        for real, emulated in moved.items():
            if where == real or where.startswith(real + "/"):
                return emulated + where[len(real):]
        return where

    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return posixpath.relpath(place(end), posixpath.dirname(place(path)))
