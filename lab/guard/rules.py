# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sysctl takes: the kernel's parsing and, where a site is likely to set the key, its range (pure).

Parsing was tried on 6.18 (kernel/sysctl.c, proc_get_long): hexadecimal and octal numbers are taken;
a number followed by anything but white space, too large a number and an empty line are EINVAL;
fewer numbers than the key has change the first ones; numbers too many are left unread, so that
write(2) answers with a smaller count; a later write at an offset is ignored.
"""
from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

INT_MIN, INT_MAX, ULONG_MAX = -(2**31), 2**31 - 1, 2**64 - 1
PAGE_BYTES = 4096
NUMBER = re.compile(r"\s*(-?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(?=\s|$)")

# Keys whose text may look like numbers, with the longest text the kernel keeps.
TEXTS = {
    "kernel/core_pattern": 127, "kernel/domainname": 64, "kernel/hostname": 64, "kernel/hotplug": 255,
    "kernel/modprobe": 255, "kernel/poweroff_cmd": 255, "kernel/printk_devkmsg": 9,
    "kernel/watchdog_cpumask": PAGE_BYTES, "net/core/flow_limit_cpu_bitmap": PAGE_BYTES,
}
QDISCS = {"bfifo", "cake", "codel", "fq", "fq_codel", "pfifo", "pfifo_fast", "pfifo_head_drop", "sfq"}
# unsigned long in the kernel, so larger than INT_MAX is good and less than 0 is not.
ULONGS = {
    "fs/aio-max-nr", "fs/file-max", "fs/pipe-user-pages-hard", "fs/pipe-user-pages-soft",
    "kernel/hung_task_timeout_secs", "net/ipv4/tcp_mem", "net/ipv4/udp_mem", "vm/admin_reserve_kbytes",
    "vm/dirty_background_bytes", "vm/dirty_bytes", "vm/mmap_min_addr", "vm/nr_hugepages",
    "vm/nr_hugepages_mempolicy", "vm/nr_overcommit_hugepages", "vm/overcommit_kbytes", "vm/user_reserve_kbytes",
}
# kernel/sysctl.c, mm/*.c and net/core/sysctl_net_core.c; all other numbers have the range of an int.
RANGES = {
    "fs/nr_open": (64, 0x7FFFFFC0), "fs/protected_fifos": (0, 2), "fs/protected_hardlinks": (0, 1),
    "fs/protected_regular": (0, 2), "fs/protected_symlinks": (0, 1), "fs/suid_dumpable": (0, 2),
    "kernel/dmesg_restrict": (0, 1), "kernel/hung_task_panic": (0, 1), "kernel/kptr_restrict": (0, 2),
    "kernel/nmi_watchdog": (0, 1), "kernel/numa_balancing": (0, 4), "kernel/perf_cpu_time_max_percent": (0, 100),
    "kernel/pid_max": (301, 4194304), "kernel/sched_autogroup_enabled": (0, 1), "kernel/soft_watchdog": (0, 1),
    "kernel/softlockup_panic": (0, 1), "kernel/threads-max": (1, INT_MAX), "kernel/timer_migration": (0, 1),
    "kernel/unprivileged_bpf_disabled": (0, 2), "kernel/watchdog": (0, 1), "kernel/watchdog_thresh": (0, 60),
    "kernel/yama/ptrace_scope": (0, 3), "net/core/rmem_default": (2304, INT_MAX), "net/core/rmem_max": (2304, INT_MAX),
    "net/core/wmem_default": (4608, INT_MAX), "net/core/wmem_max": (4608, INT_MAX), "vm/compact_memory": (1, 1),
    "vm/compaction_proactiveness": (0, 100), "vm/dirty_background_ratio": (0, 100), "vm/dirty_ratio": (0, 100),
    "vm/drop_caches": (1, 4), "vm/max_map_count": (0, INT_MAX), "vm/min_free_kbytes": (0, INT_MAX),
    "vm/overcommit_memory": (0, 2), "vm/overcommit_ratio": (0, INT_MAX), "vm/page-cluster": (0, 31),
    "vm/panic_on_oom": (0, 2), "vm/swappiness": (0, 200), "vm/watermark_scale_factor": (1, 3000),
    "vm/zone_reclaim_mode": (0, INT_MAX),
    **{f"fs/inotify/{name}": (0, INT_MAX) for name in ("max_queued_events", "max_user_instances", "max_user_watches")},
}
# Setting one to something sets the other to 0 (mm/page-writeback.c, mm/util.c).
COUPLED = {
    "vm/dirty_bytes": "vm/dirty_ratio", "vm/dirty_background_bytes": "vm/dirty_background_ratio",
    "vm/overcommit_kbytes": "vm/overcommit_ratio",
}
COUPLED |= {second: first for first, second in COUPLED.items()}


@dataclass(frozen=True)
class Taken:
    """A good write: the key's new text and how many bytes of the written ones were used."""

    text: str
    used: int


def invalid() -> OSError:
    return OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def is_text(key: str, current: str) -> bool:
    return key in TEXTS or not all(re.fullmatch(r"-?\d+", part) for part in current.split())


def limits(key: str, current: list[int]) -> tuple[int, int]:
    if key in RANGES:
        return RANGES[key]
    if key in ULONGS or any(value > INT_MAX for value in current):
        return 0, ULONG_MAX
    return INT_MIN, INT_MAX


def store(key: str, current: str, data: bytes) -> Taken:
    """What ``key`` (as below /proc/sys), now ``current``, becomes by a write of ``data``; OSError as the kernel's."""
    text = data[:PAGE_BYTES - 1].decode("latin-1")
    if key == "net/core/default_qdisc":
        name = text.strip()
        if name not in QDISCS:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return Taken(name + "\n", len(data))
    if is_text(key, current):
        line = re.split("[\n\0]", text, maxsplit=1)[0]
        return Taken(line[:TEXTS.get(key, PAGE_BYTES)] + "\n", len(data))
    return _store_numbers(key, [int(part) for part in current.split()], text)


def _store_numbers(key: str, values: list[int], text: str) -> Taken:
    low, high = limits(key, values)
    values, position, count = values or [0], 0, 0
    while count < len(values) and text[position:].strip():
        match = NUMBER.match(text, position)
        if match is None:
            raise invalid()
        digits = match[2]
        value = int(digits, 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10)
        value = -value if match[1] else value
        if not low <= value <= high:
            raise invalid()
        values[count], position, count = value, match.end(), count + 1
    if text and not count:
        raise invalid()
    rest = text[position:]
    used = len(text) - len(rest.lstrip())
    return Taken("\t".join(map(str, values)) + "\n", used)
