# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command in a host from outside under the same barriers as the host's own processes.

    python lab/enter.py PID COMMAND ...

nsenter alone joins the namespaces of process PID but keeps this machine's capabilities: `date -s` would be real.
New mounts are answered from here as long as COMMAND runs; what it leaves in the background can make none.
"""
from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# This folder holds `instance.py` and others that a module of the same name must not find first.
sys.path.remove(str(Path(__file__).resolve().parent))

from lab import syscalls as sc  # noqa: E402  (needs the path above, as the next two)
from lab.guard import confine, mounts  # noqa: E402
from lab.guard import filter as call_filter  # noqa: E402


def confined(door: socket.socket, pid: str, argv: list[str]) -> None:
    sc.set_pdeathsig(signal.SIGKILL)
    confine.drop_capabilities()
    listener = call_filter.install()
    socket.send_fds(door, [b"\0"], [listener])
    os.execvp("nsenter", ["nsenter", "-t", pid, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", *argv])


def main(pid: str, argv: list[str]) -> int:
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            confined(theirs, pid, argv)
        except OSError as error:
            print(f"lab: {error}", file=sys.stderr)
        finally:
            os._exit(127)
    theirs.close()
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # for the command to handle
    _data, descriptors, _flags, _address = socket.recv_fds(ours, 1, 1)
    if descriptors:
        threading.Thread(target=mounts.serve, args=(descriptors[0],), daemon=True).start()
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
