# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process beside a host that answers for its sysctls and its new mounts, for the time of one boot.

A fork of the host's supervisor, which has the interpreter loaded already: it costs no start and few pages of its
own. It never enters the host's mount or PID namespace. When it dies, reading /proc/sys gives ENOTCONN and a new
mount ENOSYS, at once; nothing hangs, because only it has the two descriptors (simulation.md 0b.4).
"""
from __future__ import annotations

import os
import select
import signal
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import syscalls as sc
from lab.guard import mounts

NAME = "lab-guard"
READY = b"r"
START_SECONDS = 15.0
OPTIONS = "rootmode=40555,user_id=0,group_id=0,allow_other"
FLAGS = sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC | sc.MS_RELATIME


class GuardError(Exception):
    """The guard did not do its part of a boot."""


@contextmanager
def running(netns: Path) -> Iterator[socket.socket]:
    """A guard for the time of the block, and the door to it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            _main(theirs, netns)
        except BaseException:  # what would be lost otherwise
            traceback.print_exc()
        finally:
            os._exit(1)
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _main(door: socket.socket, netns: Path) -> None:
    sc.set_pdeathsig(signal.SIGKILL)
    sc.set_name(NAME)
    from lab.guard import sysctls  # only here: the supervisor has no need of libfuse

    net = sysctls.read_machines_net(str(netns))
    door.sendall(READY)
    _data, descriptors, _flags, _address = socket.recv_fds(door, 1, 4)
    if len(descriptors) != 4:
        return  # the boot failed before it came to us
    fuse, uts, ipc, proc = descriptors
    sc.setns(uts, sc.CLONE_NEWUTS)
    sc.setns(ipc, sc.CLONE_NEWIPC)
    os.close(uts)
    os.close(ipc)
    threading.Thread(target=_answer_mounts, args=(door,), daemon=True).start()
    sysctls.serve(sysctls.Sysctls(net, sysctls.Caller(proc)), fuse)


def _answer_mounts(door: socket.socket) -> None:
    _data, descriptors, _flags, _address = socket.recv_fds(door, 1, 1)
    door.close()
    if descriptors:
        mounts.serve(descriptors[0])


def hand_over_sysctls(door: socket.socket, proc: Path) -> None:
    """In the host's first process: mount /proc/sys and give it to the guard with our namespaces and /proc."""
    if not select.select([door], [], [], START_SECONDS)[0] or door.recv(1) != READY:
        raise GuardError("the guard of sysctls and mounts did not start; its words stand above")
    others = [os.open(proc / name, os.O_RDONLY | os.O_CLOEXEC) for name in ("self/ns/uts", "self/ns/ipc", ".")]
    fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        sc.mount("proc", str(proc / "sys"), "fuse", FLAGS, f"fd={fuse},{OPTIONS}")
        socket.send_fds(door, [b"\0"], [fuse, *others])
    finally:
        for fd in (fuse, *others):
            os.close(fd)
    try:
        # The kernel answers after the guard's handshake, and with ENOTCONN if it died.
        os.stat(proc / "sys/kernel")
    except OSError as error:
        raise GuardError(f"the guard died at its first request: {error}") from error


def hand_over_mounts(door: socket.socket, listener: int) -> None:
    """Give away the descriptor of the filter; with a copy here, mounts would hang when the guard dies."""
    with door:
        socket.send_fds(door, [b"\0"], [listener])
    os.close(listener)
