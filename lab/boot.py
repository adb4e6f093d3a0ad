# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One boot of a host: from a fresh process in new namespaces to systemd as PID 1.

Runs in the child that becomes PID 1, already inside the host's network, mount, PID, UTS, IPC and
cgroup namespaces. Each mount below is private to the host and gone with it.
"""
from __future__ import annotations

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from lab import syscalls as sc
from lab.guard import confine, process
from lab.guard import filter as call_filter
from lab.hardware import layout, mount
from lab.hardware.spec import NodeSpec

READ_ONLY = sc.MS_BIND | sc.MS_REMOUNT | sc.MS_RDONLY | sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC
QUIET = sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC
# Of /proc itself: what is a host's own, or opened for each writer. All other files that can be written and all
# other folders act on the machine (sysrq-trigger, mtrr, acpi, irq ...): read-only (simulation.md 0b.11 and 2).
OWN_PROC = {"net", "pressure", "self", "sys", "sysvipc", "thread-self"}
# name -> major, minor, mode (Documentation/admin-guide/devices.txt)
DEVICES = {
    "null": (1, 3, 0o666), "zero": (1, 5, 0o666), "full": (1, 7, 0o666), "random": (1, 8, 0o666),
    "urandom": (1, 9, 0o666), "tty": (5, 0, 0o666),
}
# A GPU's device file is a character device: Slurm takes no other (tried on 24.11). The number is that of /dev/null, as
# 195, which is NVIDIA's, would open the machine's own GPU.
GPU_DEVICE = (1, 3, 0o666)
DEVICE_LINKS = {
    "ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
}


# What PID 1 says on its console.
CONSOLE = "var/log/console.log"


@dataclass(frozen=True)
class Plan:
    """Where the parts of one host's root file system are."""

    name: str
    directory: Path
    lower: tuple[Path, ...]
    spec: NodeSpec | None

    @property
    def root(self) -> Path:
        return self.directory / "root"


def read_only_bind(path: Path) -> None:
    sc.mount(str(path), str(path), None, sc.MS_BIND)
    sc.mount(None, str(path), None, READ_ONLY)


def bind(source: Path, target: Path, flags: int = 0) -> None:
    """Bind ``source`` at ``target``, which is made; with flags, remounted with them."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    sc.mount(str(source), str(target), None, sc.MS_BIND)
    if flags:
        sc.mount(None, str(target), None, flags)


def link_console(plan: Plan) -> None:
    """One file, seen outside as console.log and in the host below its own root.

    A bind of the outer file would bring the machine's own file system into the host: `mount -o remount,ro
    /dev/console` would then act on the machine's.
    """
    inner = plan.directory / "upper" / CONSOLE
    inner.parent.mkdir(parents=True, exist_ok=True)
    inner.unlink(missing_ok=True)
    os.link(plan.directory / "console.log", inner)


def mount_root(plan: Plan) -> None:
    lower = ":".join(map(str, plan.lower))
    for name in ("root", "upper", "work", "sysfs", "hardware"):
        (plan.directory / name).mkdir(exist_ok=True)
    link_console(plan)
    sc.mount("overlay", str(plan.root), "overlay", 0,
             f"lowerdir={lower},upperdir={plan.directory / 'upper'},workdir={plan.directory / 'work'}")


def mount_proc(plan: Plan, guard: socket.socket) -> None:
    proc = plan.root / "proc"
    sc.mount("proc", str(proc), "proc", QUIET)
    for entry in sorted(proc.iterdir()):
        mode = entry.lstat().st_mode
        if not entry.name.isdigit() and entry.name not in OWN_PROC and not stat.S_ISLNK(mode) \
                and (stat.S_ISDIR(mode) or mode & 0o222):
            read_only_bind(entry)
    # /proc/sys with values of the host's own; a new boot has a new boot_id, by which ansible.builtin.reboot
    # tells that the host went down.
    process.hand_over_sysctls(guard, proc)


def mount_sys(plan: Plan, hardware: socket.socket | None) -> None:
    """A /sys put together from the machine's real one, read-only, and the emulated hardware.

    The real one is mounted in the host's network namespace, so that it shows the host's links.
    """
    real, target = plan.directory / "sysfs", plan.root / "sys"
    sc.mount("sysfs", str(real), "sysfs", QUIET)
    sc.mount("sys", str(target), "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "mode=755,size=16m")
    for name in ("block", "dev", "firmware", "module", "power"):
        if (real / name).exists():
            bind(real / name, target / name, READ_ONLY)
    for parent, left_out in (("kernel", ("config",)), ("class", ("net", "infiniband")), ("devices", ("pci", "virtual")),
                             ("bus", ("pci",))):
        _bind_children(real / parent, target / parent, left_out)
    (target / "kernel/config").mkdir()
    # Links of the host itself are its own to set; they live below devices/virtual/net.
    bind(real / "devices/virtual", target / "devices/virtual", READ_ONLY)
    sc.mount(str(real / "devices/virtual/net"), str(target / "devices/virtual/net"), None, sc.MS_BIND)
    (target / "fs/cgroup").mkdir(parents=True)
    (target / "fs/fuse/connections").mkdir(parents=True)
    sc.mount("cgroup2", str(target / "fs/cgroup"), "cgroup2", QUIET)
    if plan.spec is None or hardware is None:
        bind(real / "class/net", target / "class/net")
        return
    _mount_hardware(plan, plan.spec, hardware)


def _bind_children(source: Path, target: Path, left_out: tuple[str, ...]) -> None:
    target.mkdir()
    for child in sorted(source.iterdir()):
        if not child.name.startswith(left_out):
            bind(child, target / child.name, READ_ONLY)


def _mount_hardware(plan: Plan, spec: NodeSpec, hardware: socket.socket) -> None:
    source = plan.directory / "hardware"
    for name in layout.directories(spec):
        (plan.root / name).mkdir(exist_ok=True)
    mount.hand_over(str(source), hardware)
    for inside, where in layout.binds(spec):
        bind(source / inside, plan.root / where, READ_ONLY if where in layout.READ_ONLY else 0)
    for inside, where in layout.COVERED:
        if (plan.root / where).exists():
            bind(source / inside, plan.root / where, READ_ONLY)
    sc.umount2(str(source), sc.MNT_DETACH)


def mount_dev(plan: Plan) -> None:
    dev = plan.root / "dev"
    sc.mount("dev", str(dev), "tmpfs", sc.MS_NOSUID, "mode=755,size=4m")
    os.umask(0)
    gpus = {f"nvidia{number}": GPU_DEVICE for number in range(len(plan.spec.gpus) if plan.spec else 0)}
    for name, (major, minor, mode) in {**DEVICES, **gpus}.items():
        os.mknod(dev / name, 0o020000 | mode, os.makedev(major, minor))
    os.umask(0o022)
    for name in ("pts", "shm", "mqueue"):
        (dev / name).mkdir()
    sc.mount("devpts", str(dev / "pts"), "devpts", sc.MS_NOSUID | sc.MS_NOEXEC,
             "newinstance,ptmxmode=0666,mode=620,gid=5")
    sc.mount("shm", str(dev / "shm"), "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "mode=1777")
    sc.mount("mqueue", str(dev / "mqueue"), "mqueue", QUIET)
    for name, where in DEVICE_LINKS.items():
        (dev / name).symlink_to(where)
    bind(plan.root / CONSOLE, dev / "console")


def mount_run(plan: Plan) -> None:
    run = plan.root / "run"
    sc.mount("run", str(run), "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "mode=755,size=64m")
    # PID 1 listens to udev only when this exists before it starts; the socket unit replaces it
    # (simulation.md 0.7b).
    (run / "udev").mkdir()
    (run / "udev/control").touch()


def start_init(plan: Plan, guard: socket.socket) -> None:
    """Turn the calling process into systemd. Returns only by an exception."""
    os.chdir(plan.root)
    # Old and new root may be one folder: the old one is then stacked on top (pivot_root(2), NOTES).
    sc.pivot_root(".", ".")
    sc.umount2(".", sc.MNT_DETACH)
    os.chdir("/")
    confine.lock_mounts()
    # After the lock: systemd unmounts it when the host goes down.
    sc.mount("tmp", "/tmp", "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "mode=1777")
    confine.drop_capabilities()
    process.hand_over_mounts(guard, call_filter.install())
    environment = {
        "container": "lab", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "vt220",
        "SYSTEMD_DEVICE_VERIFY_SYSFS": "0",  # simulation.md 0b.3
    }
    os.execve("/sbin/init", ["/sbin/init", "systemd.unified_cgroup_hierarchy=1", "--log-target=console",
                             "--log-level=warning"], environment)


def boot(plan: Plan, hardware: socket.socket | None, guard: socket.socket) -> None:
    """Everything from the first mount to systemd; never returns."""
    socket.sethostname(plan.name)
    mount_root(plan)
    mount_proc(plan, guard)
    mount_dev(plan)
    mount_sys(plan, hardware)
    mount_run(plan)
    start_init(plan, guard)
