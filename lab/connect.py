# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssh's ProxyCommand into the lab: python3 connect.py /run/netns/NAME ADDRESS PORT

A socket keeps the network namespace that it was made in. This program makes one in the lab's
namespace and hands it to ssh (ProxyUseFdpass), so that ssh, Ansible and ansible-runner run
unchanged on the user's machine, with its DNS and files. Standard library only; ssh gives no reason
of its own when this fails, so the one line below is all that a user sees.
"""
from __future__ import annotations

import ctypes
import os
import socket
import sys

CLONE_NEWNET = 0x40000000


def main() -> None:
    namespace, address, port = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}", namespace)
    connection = socket.create_connection((address, int(port)), timeout=10)
    connection.settimeout(None)
    socket.send_fds(socket.socket(fileno=os.dup(1)), [b"\0"], [connection.fileno()])


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError:
        sys.exit(f"lab: {sys.argv[1]} is not there: the lab is not up (make lab)")
    except PermissionError:
        sys.exit("lab: entering the lab's network needs root")
    except (OSError, ValueError) as error:
        sys.exit(f"lab: no connection to {sys.argv[2:]}: {error}")
