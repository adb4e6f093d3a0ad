# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import files
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health.model import Disk, Options

from tests.unit.plugins.fake import FakeNode

PCIS = ("0000:03:00.0", "0002:03:00.0")
LIMITS = ("Limit                     Soft Limit           Hard Limit           Units\n"
          "Max locked memory         {} {} bytes\n")


def test_ports(node: FakeNode) -> None:
    assert files.ports(node.machine(), PCIS).ok
    node.put("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
    assert files.ports(node.machine(), PCIS).text == "0000:03:00.0 (rail0, mlx5_0): RDMA port is 1: DOWN"
    assert files.ports(node.machine(), ["0000:99:00.0"]).text == "0000:99:00.0: the device is not there"
    assert files.ports(node.machine(), []).ok is None


@pytest.mark.parametrize(("gone", "words"), [
    ("net/rail0", "it has no netdev"), ("infiniband/mlx5_0", "no RDMA device")])
def test_a_port_that_lost_a_part(node: FakeNode, gone: str, words: str) -> None:
    (node.root / "sys/bus/pci/devices/0000:03:00.0" / gone).rmdir()
    assert words in files.ports(node.machine(), PCIS).text


def test_gpus(node: FakeNode) -> None:
    for number in range(4):
        node.put(f"/dev/nvidia{number}", "")
        node.put(f"/proc/driver/nvidia/gpus/0000:0{number}:00.0/information", "")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-caps"):
        node.put(f"/dev/{name}", "")
    four = Options(gpus=4)
    assert files.gpus(node.machine(), four).ok
    assert files.gpus(node.machine(), Options(gpus=4, gpus_from="device_files")).ok
    (node.root / "proc/driver/nvidia/gpus/0000:03:00.0/information").unlink()
    (node.root / "proc/driver/nvidia/gpus/0000:03:00.0").rmdir()
    # It fell off the bus, and its device file is still there.
    assert files.gpus(node.machine(), four).text == "got 3 GPUs, wanted 4"


def test_no_driver(node: FakeNode) -> None:
    node.put("/dev/nvidia0", "")
    assert files.gpus(node.machine(), Options(gpus=1)).text == "got no driver nvidia, wanted 1 GPUs"


@pytest.mark.parametrize(("limit", "least", "ok"), [
    ("unlimited", None, True), ("unlimited", 5, True), ("8388608", None, False), ("8388608", 8388608, True),
    ("8388608", 8388609, False)])
def test_memlock(node: FakeNode, limit: str, least: int | None, ok: bool) -> None:
    node.put("/proc/4242/comm", "slurmd\n")
    node.put("/proc/4242/limits", LIMITS.format(limit.ljust(20), limit.ljust(20)))
    assert files.memlock(node.machine(), Options(memlock_bytes=least)).ok is ok


def test_without_slurmd_nothing_is_known_of_its_limits(node: FakeNode) -> None:
    assert files.memlock(node.machine(), Options()).ok is None
    node.put("/proc/7/comm", "slurmd\n")
    assert files.memlock(node.machine(), Options()).ok is None


def _statvfs(**changes: int) -> t.Callable[[Path], t.Any]:
    values = {"f_flag": 0, "f_bavail": 50, "f_blocks": 100, "f_favail": 50, "f_files": 100, **changes}
    return lambda path: type("State", (), values)()


@pytest.mark.parametrize(("changes", "words"), [
    ({}, ""), ({"f_bavail": 4}, "4 % of its bytes are free, wanted 5 %"), ({"f_favail": 0}, "0 % of its inodes"),
    ({"f_flag": os.ST_RDONLY}, "mounted read-only"), ({"f_files": 0, "f_favail": 0}, ""), ({"f_bavail": 5}, "")])
def test_disks(node: FakeNode, monkeypatch: pytest.MonkeyPatch, changes: dict[str, int], words: str) -> None:
    monkeypatch.setattr(files.os, "statvfs", _statvfs(**changes))
    result = files.disk(node.machine(), Options(disks=(Disk("/var"),)))
    assert result.ok is (not words) and words in result.text


def test_a_disk_that_is_not_there(node: FakeNode) -> None:
    assert "No such file" in files.disk(node.machine(), Options(disks=(Disk("/nowhere"),))).text
