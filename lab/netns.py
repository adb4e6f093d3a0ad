# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do something in a network namespace from this process, and come back."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab import syscalls as sc
from lab.instance import NETNS_DIR


@contextmanager
def entered(name: str) -> Iterator[None]:
    """The calling thread is in namespace ``name`` inside the block; sockets made there stay there."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(NETNS_DIR / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sc.setns(there, sc.CLONE_NEWNET)
        try:
            yield
        finally:
            sc.setns(own, sc.CLONE_NEWNET)
    finally:
        os.close(own)
        os.close(there)


def directory_mounted() -> bool:
    """Whether /run/netns is a mount point, as the first ``ip netns add`` of a machine makes it."""
    return str(NETNS_DIR) in {
        line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    }


def unmount_directory() -> None:
    """Undo that, unless somebody's namespaces are in it."""
    if not NETNS_DIR.is_dir() or any(NETNS_DIR.iterdir()):
        return
    while directory_mounted():
        sc.umount2(str(NETNS_DIR), sc.MNT_DETACH)
    with suppress(OSError):
        NETNS_DIR.rmdir()
