# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process behind one host's emulated hardware.

    python -m lab.hardware.daemon --spec FILE --socket FD --sysfs DIR

Started in the host's network namespace and outside of everything else of it. It mounts a sysfs of that
namespace at DIR for itself alone, takes the FUSE descriptor from the host's first process over the
socket FD, and serves until the mount is gone.
"""
from __future__ import annotations

import argparse
import json
import logging
import socket
from pathlib import Path

import mfusepy

from lab import syscalls as sc
from lab.hardware import mount
from lab.hardware.fs import Hardware
from lab.hardware.model import Node
from lab.hardware.netlink import Addresses
from lab.hardware.spec import NodeSpec


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--sysfs", type=Path, required=True)
    arguments = parser.parse_args()
    # Without this, each EINVAL that a reader is meant to get leaves a line in the host's log.
    logging.getLogger("fuse").setLevel(logging.CRITICAL)
    sc.unshare(sc.CLONE_NEWNS)
    sc.mount("", "/", "", sc.MS_REC | sc.MS_PRIVATE)
    sc.mount("sysfs", str(arguments.sysfs), "sysfs", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    addresses = Addresses()
    node = Node(NodeSpec.from_dict(json.loads(arguments.spec.read_text(encoding="utf-8"))), arguments.sysfs, addresses)
    # Before the host's systemd can add an address: the order of what follows is the order of GIDs.
    node.refresh()
    with socket.socket(fileno=arguments.socket) as channel:
        fd = mount.receive(channel)
    # Names and attributes hardly change and may be kept for a second; contents never are (direct_io).
    mfusepy.FUSE(Hardware(node, arguments.sysfs), f"/dev/fd/{fd}", raw_fi=True, foreground=True, nothreads=True,
                 entry_timeout=1, attr_timeout=1, negative_timeout=0)


if __name__ == "__main__":
    main()
