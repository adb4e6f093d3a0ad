# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hardware of one host as a process: ``python -m lab.hardware.daemon --spec FILE --socket FDNUM --sysfs DIR ...``.

Started by the launcher inside the host's network namespace, in the root mount namespace. It never enters the host:
it gets the FUSE descriptor over a socket (simulation.md 0b.4) and ends when that mount is gone.
"""
from __future__ import annotations

import argparse
import functools
import os
import socket
import sys
import threading
from pathlib import Path

from lab import syscalls
from lab.hardware import cable, door, gpus, kernel, reload
from lab.hardware.fs import serve
from lab.hardware.model import Node
from lab.hardware.mount import READY
from lab.hardware.netlink import Reader
from lab.hardware.spec import NodeSpec
from lab.hardware.state import Event, State


def private_sysfs(directory: str) -> None:
    """Mount the sysfs of this network namespace where only this process sees it.

    Its own mount namespace, not /sys: over /sys it would hide the cgroup tree (simulation.md 0b.4).
    """
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    syscalls.mount("sysfs", directory, "sysfs", flags)


def receive(number: int) -> int:
    """Say that we listen, then take the FUSE descriptor; the socket is closed after."""
    with socket.socket(fileno=number) as sock:
        sock.sendall(READY)
        _data, descriptors, _flags, _address = socket.recv_fds(sock, 1, 1)
    if len(descriptors) != 1:
        raise SystemExit("hardware daemon: the launcher closed the socket without passing a descriptor")
    return descriptors[0]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="lab.hardware.daemon")
    parser.add_argument("--spec", required=True, help="node specification, JSON")
    parser.add_argument("--socket", required=True, type=int, help="number of the inherited unix socket")
    parser.add_argument("--sysfs", required=True, help="empty directory to mount this namespace's sysfs on")
    parser.add_argument("--state", type=Path, help="file that keeps what outlives a boot (default: nothing does)")
    parser.add_argument("--door", type=Path, help="unix socket to open for the lab's own requests (default: none)")
    parser.add_argument("--fabric", help="network namespace of the cables' far ends (default: no link can toggle)")
    parser.add_argument("--cable", action="append", default=[], help="far end of a rail's cable, in rail order")
    parser.add_argument("--boot", type=Event, default=Event.COLD, help="what happened before: cold or warm")
    parser.add_argument("--layer", type=Path, action="append", default=[],
                        help="folder of the host's root, the upper one first (default: it has the kernel's own driver)")
    parser.add_argument("--processes", type=Path,
                        help="cgroup of the host's processes (default: no device file is open)")
    parser.add_argument("--host", nargs=2, metavar=("INSTANCE", "HOST"),
                        help="whose driver a restart from inside reloads (default: it cannot be restarted)")
    args = parser.parse_args(argv)
    spec = NodeSpec.from_json(Path(args.spec).read_text(encoding="utf-8"))
    sysfs = os.path.abspath(args.sysfs)  # libfuse changes to /
    private_sysfs(sysfs)
    state, lock = State(spec, args.state), threading.Lock()
    if args.layer:
        state.disk = lambda: kernel.on_disk(args.layer, os.uname().release)
        state.gpus.file = functools.partial(kernel.module_file, args.layer)
    if args.processes is not None:
        state.gpus.openers = functools.partial(gpus.open_device_files, args.processes)
    state.happen(args.boot)
    model = Node(spec, sysfs, Reader(), state)
    if args.host is not None:
        model.reload = reload.starter(model, *args.host)
    if args.fabric is not None:
        model.toggle = cable.Cables(cable.socket_in(args.fabric), args.cable).toggle
    if args.door is not None:
        door.serve(args.door, state, lock)
    descriptor = receive(args.socket)
    serve(model, descriptor, lock)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
