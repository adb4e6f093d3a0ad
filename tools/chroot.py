# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command in a Debian root with namespaces of its own. Standard library only.

Mounts exist only in the command's mount namespace and processes only in its PID namespace: when the
calling process ends, killed or not, both are gone. The root itself is never written to.
"""
from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from lab import cgroup
from lab import syscalls as sc

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0),
           "fuse": (10, 229)}
DEVICE_LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
                "stderr": "/proc/self/fd/2"}
TIMED_OUT = 124
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


@dataclass(frozen=True)
class Bind:
    """``source`` of this machine seen as ``inside``; without submounts."""

    source: Path
    inside: str
    read_only: bool = True


@dataclass(frozen=True)
class Room:
    lower: Path
    """The Debian root."""
    layer: Path
    """An empty folder; what is written goes there, or into memory that is mounted there."""
    hostname: str
    memory: bool = True
    network: bool = False
    """The machine's network, or only a loopback of its own."""
    cgroup: Path | None = None
    """What runs is put into it and sees it as the top of the hierarchy."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()


def run(room: Room, argv: Sequence[str], environment: Mapping[str, str], cwd: str, seconds: float | None = None) -> int:
    """Exit status of ``argv``, run in ``room``; 124 when time ran out, 128 + N when signal N ended it."""
    sys.stdout.flush()
    pid = _fork(lambda: _outside(room, argv, environment, cwd))
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return _exit_status(status)
            if deadline is not None and time.monotonic() > deadline:
                return TIMED_OUT
            time.sleep(0.05)
    finally:
        _end(pid)


def _end(pid: int) -> None:
    """Kill the child unless it was waited for; the kernel passes that on to everything inside."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def _exit_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _fork(function: Callable[[], int]) -> int:
    """A child that ends with this process and never returns into its caller."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        sc.set_pdeathsig(signal.SIGKILL)
        # The parent of the first process of a PID namespace has no number there.
        if os.getppid() not in (parent, 0):
            os._exit(1)
        code = function()
    except BaseException as error:  # the child's last words; anything else would be lost
        print(f"chroot: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _outside(room: Room, argv: Sequence[str], environment: Mapping[str, str], cwd: str) -> int:
    flags = sc.CLONE_NEWNS | sc.CLONE_NEWPID | sc.CLONE_NEWUTS | sc.CLONE_NEWIPC
    if room.cgroup:
        cgroup.enter(room.cgroup)
        flags |= sc.CLONE_NEWCGROUP
    sc.unshare(flags if room.network else flags | sc.CLONE_NEWNET)
    _pid, status = os.waitpid(_fork(lambda: _first(room, argv, environment, cwd)), 0)
    return _exit_status(status)


def _first(room: Room, argv: Sequence[str], environment: Mapping[str, str], cwd: str) -> int:
    """PID 1: mounts, then one command; it reaps whatever else ends."""
    os.setsid()
    socket.sethostname(room.hostname)
    if not room.network:
        _loopback_up()
    _mount(room)
    child = _fork(lambda: _exec(argv, environment, cwd))
    while True:
        pid, status = os.wait()
        if pid == child:
            return _exit_status(status)


def _exec(argv: Sequence[str], environment: Mapping[str, str], cwd: str) -> NoReturn:
    os.chdir(cwd)
    os.execvpe(argv[0], list(argv), dict(environment))


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16xH14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[0]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def _mount(room: Room) -> None:
    sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
    if room.memory:
        sc.mount("layer", str(room.layer), "tmpfs", 0, "mode=755")
    upper, work, root = (room.layer / name for name in ("upper", "work", "root"))
    for directory in (upper, work, root):
        directory.mkdir()
    sc.mount("overlay", str(root), "overlay", 0, f"lowerdir={room.lower},upperdir={upper},workdir={work}")
    sc.mount("proc", str(root / "proc"), "proc", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    sc.mount("sysfs", str(root / "sys"), "sysfs", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    if room.cgroup:
        sc.mount("cgroup2", str(root / "sys/fs/cgroup"), "cgroup2", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    _mount_dev(root / "dev")
    for name in ("run", "tmp"):
        sc.mount(name, str(root / name), "tmpfs", sc.MS_NOSUID | sc.MS_NODEV,
                 "mode=1777" if name == "tmp" else "mode=755")
    for inside, content in room.files.items():
        target = root / inside.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for bind in room.binds:
        _bind(bind, root / bind.inside.lstrip("/"))
    os.chdir(root)
    # Old and new root may be one folder: the old one is then stacked on top (pivot_root(2), NOTES).
    sc.pivot_root(".", ".")
    sc.umount2(".", sc.MNT_DETACH)
    os.chdir("/")


def _mount_dev(dev: Path) -> None:
    sc.mount("dev", str(dev), "tmpfs", sc.MS_NOSUID, "mode=755,size=4m")
    old = os.umask(0)
    for name, (major, minor) in DEVICES.items():
        os.mknod(dev / name, 0o020666, os.makedev(major, minor))
    os.umask(old)
    for name in ("pts", "shm"):
        (dev / name).mkdir()
    sc.mount("devpts", str(dev / "pts"), "devpts", sc.MS_NOSUID | sc.MS_NOEXEC,
             "newinstance,ptmxmode=0666,mode=620,gid=5")
    sc.mount("shm", str(dev / "shm"), "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "mode=1777")
    for name, where in DEVICE_LINKS.items():
        (dev / name).symlink_to(where)


def _bind(bind: Bind, target: Path) -> None:
    if bind.source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    sc.mount(str(bind.source), str(target), None, sc.MS_BIND)
    if bind.read_only:
        sc.mount(None, str(target), None, sc.MS_BIND | sc.MS_REMOUNT | sc.MS_RDONLY)
