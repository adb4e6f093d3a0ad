# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read and replace small files: a reader sees the old text or the new one, never a part."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path


def read_text(path: Path) -> str | None:
    """The text, or None where there is no such file (a link to nowhere included)."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, text: str | bytes, mode: int, directory_mode: int = 0o755) -> None:
    """Put ``text`` in place in one step; it survives a power cut once this returns."""
    path.parent.mkdir(mode=directory_mode, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode("utf-8") if isinstance(text, str) else text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def remove(path: Path) -> None:
    """Remove the file; it may be gone already."""
    path.unlink(missing_ok=True)
