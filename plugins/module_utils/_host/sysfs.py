# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read sysfs below a root directory, and tell an empty slot from a device that went away.

sysfs answers EINVAL for a GID slot that is empty or not ours, ENOENT or ENODEV when the device is
removed while we read, and other errors when something is broken (ENOTCONN: an emulation whose process died).
"""
from __future__ import annotations

import errno
import os
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

State = t.Literal["ok", "empty", "gone", "error"]
_GONE = {errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR}


@dataclass(frozen=True)
class Reading:
    state: State
    value: str = ""
    error: str = ""

    def or_none(self) -> str | None:
        """The value, or None if there is none or the file is blank."""
        return self.value or None


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key under which mlx5_2 stands before mlx5_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _failure(error: OSError) -> Reading:
    if error.errno in _GONE:
        return Reading("gone")
    if error.errno == errno.EINVAL:
        return Reading("empty")
    return Reading("error", "", errno.errorcode.get(error.errno or 0, str(error)))


class Sysfs:
    """Reads below ``root`` (``/sys`` on a host). Errors that are not "empty" or "gone" are kept in ``errors``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.errors: dict[str, str] = {}

    def _note(self, path: str, reading: Reading) -> Reading:
        if reading.state == "error":
            self.errors[path] = reading.error
        return reading

    def read(self, path: str) -> Reading:
        try:
            return Reading("ok", (self.root / path).read_text(encoding="utf-8", errors="replace").strip())
        except OSError as error:
            return self._note(path, _failure(error))

    def names(self, path: str) -> list[str]:
        """Entries of a directory in natural order; none if it is not there."""
        try:
            return sorted(os.listdir(self.root / path), key=natural)
        except OSError as error:
            self._note(path, _failure(error))
            return []

    def link_name(self, path: str) -> str | None:
        """Last part of what a link points to, such as the driver's name."""
        try:
            return os.path.basename(os.readlink(self.root / path)) or None
        except OSError as error:
            self._note(path, _failure(error))
            return None

    def number(self, path: str) -> int | None:
        value = self.read(path).value
        try:
            return int(value, 0)
        except ValueError:
            return None
