# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A full reading of this machine's settings, to be compared before and after something in a lab host."""
from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

# Counters and what differs at each read; compared are settings.
VOLATILE = re.compile(
    r"^/proc/sys/(kernel/(random/(?!boot_id|write_wakeup|urandom_min)|ns_last_pid|pty/nr|hung_task_detect_count)"
    r"|fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota/)|net/netfilter/nf_conntrack_(count|buckets)"
    r"|net/ipv[46]/(conf|neigh)/(?!all|default|lo))")
TREES = ("/proc/sys", "/sys/power", "/sys/kernel/mm")
# Scanning, merging and swapping count what they did beside what they are told to do.
COUNTERS = re.compile(r"/(stats|ksm|numa|damon)/|pages_collapsed|full_scans|/free_hugepages|wakeup_count|suspend_stats")


def value(path: str) -> str:
    try:
        return Path(path).read_bytes()[:4096].decode("latin-1")
    except OSError as error:
        return f"errno {error.errno}"


def settings() -> dict[str, str]:
    found = {}
    for tree in TREES:
        for base, _dirs, names in os.walk(tree):
            for name in names:
                path = f"{base}/{name}"
                if not VOLATILE.match(path) and not COUNTERS.search(path) and os.lstat(path).st_mode & 0o400:
                    found[path] = value(path)
    for pattern in ("module/*/parameters/*", "block/*/queue/*", "block/*/ro"):
        for entry in Path("/sys").glob(pattern):
            # Parameters that nobody can set are counters, often.
            if entry.is_file() and entry.stat().st_mode & 0o600 == 0o600 or entry.name == "ro":
                found[str(entry)] = value(str(entry))
    return found


def clock_offset_ns() -> int:
    """CLOCK_REALTIME - CLOCK_MONOTONIC: a step of the clock shows here, slewing does not. The best of 200."""
    best = (1 << 62, 0)
    for _try in range(200):
        one = time.monotonic_ns()
        real = time.time_ns()
        two = time.monotonic_ns()
        best = min(best, (two - one, real - (one + two) // 2))
    return best[1]


def links() -> dict[str, str]:
    text = subprocess.run(["ip", "-j", "addr", "show"], capture_output=True, text=True, check=True).stdout
    wanted = ("flags", "mtu", "address", "operstate", "master", "qdisc", "txqlen")
    return {f"link {link['ifname']}": json.dumps([[link.get(key) for key in wanted],
                                                  [info.get("local") for info in link["addr_info"]]])
            for link in json.loads(text)}


def lines(path: str) -> dict[str, str]:
    return {f"{path}: {line}": "" for line in value(path).splitlines() if "/run/netns" not in line}


def cgroups() -> dict[str, str]:
    """The groups of every hierarchy, without those of labs."""
    return {f"cgroup {base}": "" for base, _dirs, _names in os.walk("/sys/fs/cgroup") if "/aidc-lab-" not in base}


def reading() -> dict[str, str]:
    """Everything but the clock, which has a tolerance of its own."""
    return {
        **settings(), **links(), **lines("/proc/self/mountinfo"), **lines("/proc/swaps"), **cgroups(),
        "modules": "\n".join(sorted(line.split()[0] for line in value("/proc/modules").splitlines())),
        "built-in modules": " ".join(sorted(os.listdir("/sys/module"))),
        "boot time": next(line for line in value("/proc/stat").splitlines() if line.startswith("btime")),
        "host name": os.uname().nodename,
    }


def difference(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {key: (before.get(key), after.get(key)) for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)}


def file_systems(mountinfo: str) -> dict[str, set[str]]:
    """type -> device numbers of the file systems in a text of /proc/PID/mountinfo."""
    found: dict[str, set[str]] = {}
    for line in mountinfo.splitlines():
        fields = line.split()
        found.setdefault(fields[fields.index("-") + 1], set()).add(fields[2])
    return found
