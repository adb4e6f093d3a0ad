# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Things that are built once and kept in ``cache/``: one builder at a time, no leftovers of a killed one."""
from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def building(cache: Path, what: str) -> Iterator[None]:
    """The only builder of ``what`` inside the block; others wait."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{what}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unless_building(cache: Path, what: str, clean: Callable[[Path], None]) -> None:
    """Call ``clean(cache)``, unless a builder of ``what`` is at work or there is no cache."""
    if not cache.is_dir():
        return
    with open(cache / f"{what}.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        clean(cache)
