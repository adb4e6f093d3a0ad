# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes outside a host that it cannot do without."""
from __future__ import annotations

import contextlib
from pathlib import Path

from lab.guard.process import NAME as GUARD
from lab.instance import Instance

SUPERVISOR, HARDWARE = "lab.supervisor", "lab.hardware.daemon"


def processes(instance: Instance, host: str) -> dict[int, set[str]]:
    """pid -> which of them it is, for those of ``host`` that run."""
    found: dict[int, set[str]] = {}
    with contextlib.suppress(OSError):
        for pid in (instance.host_cgroup(host) / "outside/cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
                name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
                # The guard is a fork of the supervisor and has its command line.
                found[int(pid)] = {GUARD} if name == GUARD else {SUPERVISOR, HARDWARE} & set(words)
    return found


def missing(instance: Instance, host: str, hardware: bool) -> set[str]:
    """What of ``host``'s processes outside has ended; ``hardware``: whether it has emulated hardware."""
    present = set().union(*processes(instance, host).values())
    return {SUPERVISOR, GUARD, *([HARDWARE] if hardware else [])} - present
