# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root in a lab host tries against the machine: harmless values, should a barrier fail.

``says`` is what the refusal must say: an attempt that fails for another reason (a tool that is not there) proves
nothing. Python's calls print the errno's text.
"""
from __future__ import annotations

import platform
from dataclasses import dataclass

from lab.guard.filter import number

REFUSED = r"not permitted|[Pp]ermission denied|Read-only file system"
# mount(8) and umount(8) on a locked mount: EINVAL, which they put in words of their own.
LOCKED = r"not mounted|Invalid argument|wrong fs type|bad option"
CALL = """\
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
r = {call}
raise SystemExit(os.strerror(ctypes.get_errno()) if r == -1 else 0)
"""


@dataclass(frozen=True)
class Attempt:
    """``argv`` must fail with ``says``; or, if that is None, may succeed, but only inside."""

    argv: tuple[str, ...]
    would: str
    says: str | None = REFUSED


def shell(text: str, would: str, says: str | None = REFUSED) -> Attempt:
    return Attempt(("sh", "-c", text), would, says)


def call(text: str, would: str, says: str | None = REFUSED) -> Attempt:
    return Attempt(("python3", "-c", CALL.format(call=text)), would, says)


def raw(name: str, arguments: str, would: str) -> Attempt:
    """A system call that has no function in the C library."""
    return call(f"l.syscall({number(name, platform.machine())}, {arguments})", would)


def fresh(kind: str, would: str, then: str = "ls /mnt") -> Attempt:
    return shell(f"mount -t {kind} x /mnt && {then}; s=$?; umount /mnt 2>/dev/null; exit $s", would)


def attempts(disk: tuple[int, int], canary: int) -> list[Attempt]:
    """All of them; ``disk``: number of the machine's root disk, ``canary``: a process of the machine."""
    write = "echo 61 > /mnt/sys/vm/swappiness"
    own = "x=$(cat {0}) && echo $x > {0}"  # a parameter to the value it has
    parameter = "/sys/module/printk/parameters/time"
    major, minor = disk
    return [
        # Settings a role may well make: they work, and stay inside.
        *(Attempt(("sysctl", "-w", setting), "the machine's sysctl", None) for setting in (
            "vm.swappiness=61", "vm.nr_hugepages=2", "kernel.numa_balancing=0", "kernel.core_pattern=|/bin/false",
            "net.core.rmem_max=67108864", "net.ipv4.tcp_mem=1000 2000 3000", "fs.file-max=1000000",
            "user.max_net_namespaces=99", "kernel.hostname=escaped", "kernel.shmmax=99999999",
            "net.ipv4.ip_forward=1", "net.ipv4.neigh.default.gc_thresh3=4096")),
        Attempt(("ip", "link", "set", "lo", "mtu", "60000"), "the machine's links", None),
        Attempt(("swapoff", "-a"), "swap", None),
        # New views of the machine's trees, also from a further mount namespace.
        fresh("proc", "fresh /proc, sysctls writable", write),
        fresh("sysfs", "fresh /sys, writable", own.format("/mnt/module/printk/parameters/time")),
        shell(f"unshare -m sh -c 'mount -t proc p /mnt && {write}'", "fresh /proc, namespace below ours"),
        shell(f"unshare -m -p -f sh -c 'mount -t proc p /mnt && {write}'", "fresh /proc, PID namespace below ours"),
        raw("fsopen", "b'proc', 0", "fresh /proc by fsopen(2)"),
        call("l.mount(b'p', b'/mnt', b'proc', ctypes.c_ulong(0xC0ED0000), None)", "fresh /proc, old magic flags"),
        fresh("devtmpfs", "the machine's disks"), fresh("debugfs", "kernel internals"),
        fresh("tracefs", "kernel internals"), fresh("securityfs", "LSM rules"), fresh("configfs", "kernel objects"),
        fresh("binfmt_misc", "programs for foreign binaries"), fresh("bpf", "BPF objects"),
        fresh("pstore", "crash records"), fresh("cgroup -o memory", "cgroups of version 1, release_agent"),
        shell("mount -t cgroup2 x /mnt && ls /mnt/user.slice && ls -d /mnt/aidc-lab-* /mnt/unified; s=$?; umount /mnt;"
              "exit $s", "cgroups of the machine", "No such file"),
        # What lies below or beside the mounts that a host has.
        shell("umount /proc/sys && echo 61 > /proc/sys/vm/swappiness", "the real /proc/sys below ours", LOCKED),
        shell("umount -l /proc/sys && echo 61 > /proc/sys/vm/swappiness", "the same, lazily", LOCKED),
        shell("unshare -m sh -c 'umount -l /proc/sys && echo 61 > /proc/sys/vm/swappiness'", "the same, below", LOCKED),
        shell("mount --bind /proc /mnt && echo 61 > /mnt/sys/vm/swappiness", "/proc without ours on it", LOCKED),
        shell("mount --rbind /proc /mnt && umount -l /mnt/sys; s=$?; umount -l /mnt; exit $s", "a copy of it", LOCKED),
        shell("mkdir -p /run/m && mount --move /proc/sys /run/m && echo 61 > /proc/sys/vm/swappiness", "move ours away",
              LOCKED),
        shell(f"mount -o remount,rw,bind /sys/module && {own.format(parameter)}", "module parameters"),
        # A host with hardware has the model's FUSE there, which takes no new options at all.
        shell(f"mount -o remount,rw /sys/module && {own.format(parameter)}", "module parameters",
              REFUSED + "|No changes allowed"),
        shell(f"unshare -m sh -c 'mount -o remount,rw,bind /sys/module && {own.format(parameter)}'", "the same, below"),
        shell(f"umount -l /sys/module && {own.format(parameter)}", "module parameters", LOCKED),
        shell(own.format(parameter), "module parameters"),
        shell("echo bogus > /sys/power/state", "sleep", REFUSED + "|nonexistent"),
        shell("echo h > /proc/sysrq-trigger", "sysrq", REFUSED + "|nonexistent"),
        shell("echo 'disable=99' > /proc/mtrr", "memory types", REFUSED + "|nonexistent"),
        shell("echo 0 > /proc/irq/default_smp_affinity", "interrupts", REFUSED + "|nonexistent"),
        # Disks and memory.
        shell(f"mknod /run/d b {major} {minor} && head -c 1 /run/d", "the machine's disk"),
        shell(f"mknod /run/d b {major} {minor} && mount -o ro /run/d /mnt", "the machine's root file system"),
        shell("mknod /run/d c 1 1 && head -c 1 /run/d", "memory"),
        shell("mknod /run/d c 1 11 && head -c 1 /run/d", "kernel log"),
        call("l.open_by_handle_at(-100, b'', 0)", "any file by its number"),
        # The kernel. Arguments that do nothing where the call is let through.
        Attempt(("python3", "-c", "import time; time.clock_settime_ns(0, time.time_ns() + 1000000)"), "clock"),
        Attempt(("date", "-s", "+1 second"), "clock"),
        raw("settimeofday", "None, None", "clock"),
        Attempt(("dmesg", "--console-level", "4"), "kernel log"),
        raw("init_module", "None, 0, b''", "init_module"), raw("finit_module", "-1, b'', 0", "finit_module"),
        raw("delete_module", "b'none_of_this_name', 0", "delete_module"),
        raw("kexec_load", "0, 1, None, -1", "kexec_load"), raw("kexec_file_load", "-1, -1, 0, None, 0", "kexec_file"),
        call("l.swapon(b'/nonexistent', 0)", "swap"), call("l.swapoff(b'/nonexistent')", "swap"),
        raw("bpf", "-1, None, 0", "bpf"), raw("perf_event_open", "None, 0, -1, -1, 0", "perf events"),
        raw("keyctl", "0, -4, 0", "root's keys"), raw("add_key", "b'user', b'n', b'v', 1, -2", "root's keys"),
        call("l.acct(b'/nonexistent')", "accounting"), call("l.quotactl(-1, None, 0, None)", "quota"),
        call("l.socket(40, 1, 0)", "the hypervisor", "Address family not supported"),
        # Other processes.
        shell(f"kill -0 {canary}", "a process of the machine", "[Nn]o such process"),
        shell(f"nsenter -t {canary} -m true", "its namespaces", "No such file"),
        shell(f"ls -d /proc/{canary}", "its files", "No such file"),
    ]
