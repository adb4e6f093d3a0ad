# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running lab looks like from outside."""
from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from lab import cgroup, lifecycle
from lab.fleet import Fleet, Host
from lab.instance import Instance, LabError


def memory_bytes(pids: list[int]) -> int:
    """Proportional set size of ``pids`` together: shared pages are counted once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def _state(instance: Instance, host: Host) -> tuple[str, str]:
    try:
        done = subprocess.run(lifecycle.inside(instance, host.name, ["systemctl", "is-system-running"]),
                              capture_output=True, text=True, timeout=10, check=False)
        state = done.stdout.strip() or "no answer"
    except LabError:
        return "off", "-"
    except subprocess.TimeoutExpired:
        state = "no answer"
    return state, f"{memory_bytes(cgroup.pids(instance.host_cgroup(host.name))) / 2**20:.0f}"


def lines(instance: Instance, fleet: Fleet) -> list[str]:
    """A table: host, class, address, state, memory."""
    rows = [("host", "class", "address", "state", "MiB")]
    for host in fleet.hosts:
        rows.append((host.name, host.node_class, fleet.management_address(host), *_state(instance, host)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
