# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import os

import pytest

from lab.guard import mounts


@pytest.mark.parametrize("name", ["tmpfs", "overlay", "cgroup2", "nfs4", "fuse.sshfs", "devpts"])
def test_allowed(name: str) -> None:
    assert mounts.allowed(name)


@pytest.mark.parametrize("name", ["proc", "sysfs", "devtmpfs", "cgroup", "debugfs", "ext4", "", "tmpfsx", "fuseblk"])
def test_not_allowed(name: str) -> None:
    assert not mounts.allowed(name)


@pytest.mark.parametrize(("flags", "new"), [(0, True), (1 | 2 | 4, True), (0xC0ED0000, True), (0xC0ED0001, True),
                                            (1 << 18, False), (1 << 19 | 16384, False)])
def test_makes_new(flags: int, new: bool) -> None:
    assert mounts.makes_new(flags) is new


def test_read_text_stops_at_its_end_and_at_a_hole() -> None:
    buffer = ctypes.create_string_buffer(b"sysfs\0more")
    assert mounts.read_text(os.getpid(), ctypes.addressof(buffer)) == "sysfs"
    with pytest.raises(OSError):
        mounts.read_text(os.getpid(), 16)


def test_sizes_are_the_kernels() -> None:
    assert (mounts.NOTICE.size, mounts.ANSWER.size) == (80, 24)
