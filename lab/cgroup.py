# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's own cgroups: whatever a host starts can be found and ended through them.

Source: Documentation/admin-guide/cgroup-v2.rst (cgroup.kill since Linux 5.14).
"""
from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


def enter(cgroup: Path) -> None:
    """Move the calling process into ``cgroup``. Raises OSError when it is gone."""
    with open(cgroup / "cgroup.procs", "w", encoding="ascii") as file:
        file.write("0")


def pids(cgroup: Path) -> list[int]:
    """Processes in ``cgroup`` and below; zombies count as long as nobody reaped them."""
    found: list[int] = []
    for directory, _dirs, _files in os.walk(cgroup):
        with contextlib.suppress(OSError):
            found += map(int, (Path(directory) / "cgroup.procs").read_text(encoding="ascii").split())
    return found


def populated(cgroup: Path) -> bool:
    try:
        return "populated 1" in (cgroup / "cgroup.events").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def kill(cgroup: Path, seconds: float = 10.0) -> None:
    """End every process in ``cgroup`` and below, and wait until they are gone."""
    with contextlib.suppress(FileNotFoundError):
        (cgroup / "cgroup.kill").write_text("1", encoding="ascii")
    deadline = time.monotonic() + seconds
    while populated(cgroup):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{cgroup}: processes {pids(cgroup)} still there {seconds:.0f} s after they were killed")
        time.sleep(0.01)


def remove(cgroup: Path) -> None:
    """Remove an empty ``cgroup`` and everything below it, bottom up."""
    for directory, _dirs, _files in os.walk(cgroup, topdown=False):
        # The kernel lets go of a cgroup a moment after its last process ended.
        for attempt in range(100):
            try:
                os.rmdir(directory)
                break
            except FileNotFoundError:
                break
            except OSError:
                if attempt == 99:
                    raise
                time.sleep(0.02)
