# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launcher's half of the hand-over: mount FUSE in the host's mount namespace, give the daemon the descriptor.

The daemon itself never enters the host (simulation.md 0b.4). The steps, in this order:

1. ``launcher_end, daemon_end = socket.socketpair()``; start the daemon inside the host's network namespace with
   ``pass_fds=[daemon_end.fileno()]`` and ``daemon_argv(...)``; close ``daemon_end``.
2. In a process that is in the host's new mount namespace: ``hand_over(target, launcher_end)``.
3. Bind the parts of ``target`` (layout.py), then ``umount2(target, MNT_DETACH)``; the binds keep it alive.
"""
from __future__ import annotations

import os
import select
import socket
import stat
import sys
import time

from lab import syscalls

READY = b"ready"
OPTIONS = "rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
# sysfs is mounted with these as well.
FLAGS = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC | syscalls.MS_RELATIME
SOURCE = "sysfs"


class HandOverError(Exception):
    """The daemon did not take the file system; the message says at which step."""


def daemon_argv(spec_file: str, socket_fd: int, sysfs_dir: str, python: str = sys.executable,
                more: tuple[str, ...] = ()) -> list[str]:
    """Command line of the daemon; run it with the checkout as working directory or on PYTHONPATH.

    ``more``: --state, --door and --boot, where the host has them (daemon.py).
    """
    return [python, "-m", "lab.hardware.daemon", "--spec", spec_file, "--socket", str(socket_fd), "--sysfs", sysfs_dir,
            *more]


def mount_fuse(target: str) -> int:
    """Mount a FUSE file system on ``target`` here; the descriptor that answers for it."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        syscalls.mount(SOURCE, target, "fuse", FLAGS, f"fd={fd},{OPTIONS}")
    except OSError:
        os.close(fd)
        raise
    return fd


def _wait_ready(sock: socket.socket, seconds: float) -> None:
    """Wait for the daemon's word: its imports take about 0.2 s, and a crash there must not hang us."""
    deadline = time.monotonic() + seconds
    got = b""
    while got != READY:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            raise HandOverError(f"hardware daemon not ready after {seconds:g} s (received {got!r})")
        part = sock.recv(len(READY) - len(got))
        if not part:
            raise HandOverError(f"hardware daemon ended before it was ready (received {got!r})")
        got += part


def serve_fd(sock: socket.socket, fd: int) -> None:
    """Give the FUSE descriptor away and close ours.

    Only the daemon may hold it: with a copy here its readers would hang for ever when it dies (simulation.md
    0b.4). Do not fork between mount_fuse and this; O_CLOEXEC covers an exec, not a fork.
    """
    try:
        socket.send_fds(sock, [b"\0"], [fd])
    finally:
        os.close(fd)


def hand_over(target: str, sock: socket.socket, seconds: float = 15) -> None:
    """Wait for the daemon, mount on ``target`` and pass it on; returns when the daemon answers. Closes ``sock``."""
    with sock:
        _wait_ready(sock, seconds)
        serve_fd(sock, mount_fuse(target))
    try:
        # The kernel answers only after the daemon's handshake, and with ENOTCONN if the daemon has died.
        good = stat.S_ISDIR(os.stat(os.path.join(target, "net")).st_mode)
    except OSError as error:
        raise HandOverError(f"hardware daemon died at its first request: {error}") from error
    if not good:
        raise HandOverError(f"{target}: not the hardware's file system")
