# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import bus_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Driven
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.sysfs import Sysfs
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle import io as idle_io

from tests.unit.plugins.gpu_node import GpuNode, epyc, gb200, l40s

VIDEO = {"vendor": "0x10de", "device": "0x26b9", "class": "0x030000"}


def gpus(node: GpuNode) -> tuple[bus_io.Pci, ...]:
    return bus_io.gpus(node.machine(), Sysfs(node.root / "sys"))


def test_gpus(tmp_path: Path) -> None:
    found = gpus(l40s(tmp_path))
    assert [(one.pci, one.pci_id, one.numa_node, one.driver, one.answers) for one in found][::3] == [
        ("0000:42:00.0", "10de:26b9", 0, "nvidia", True), ("0000:86:00.0", "10de:26b9", 1, "nvidia", True)]
    assert found[3].path == ("pci0000:80", "0000:80:01.1", "0000:81:00.0", "0000:82:01.0")
    assert found[0].pcie == {"current_speed_gts": 32.0, "current_width": 16, "max_speed_gts": 32.0, "max_width": 16}


def test_what_is_no_gpu(tmp_path: Path) -> None:
    """An audio function, an NVSwitch, a virtual function, another vendor's card."""
    node = epyc(tmp_path)
    node.function("0000:01:00.1", "pci0000:00", "snd_hda_intel", 0, {**VIDEO, "class": "0x040300"})
    node.function("0000:02:00.0", "pci0000:00", "nvidia-nvswitch", 0, {**VIDEO, "class": "0x068000"})
    node.function("0000:03:00.4", "pci0000:00", "nvidia", 0, VIDEO)
    (tmp_path / "sys/bus/pci/devices/0000:03:00.4/physfn").symlink_to("../0000:03:00.0")
    node.function("0000:04:00.0", "pci0000:00", "ast", 0, {**VIDEO, "vendor": "0x1a03"})
    assert gpus(node) == ()
    node.function("0000:05:00.0", "pci0000:00", "nvidia", -1, VIDEO)
    assert [(one.pci, one.numa_node) for one in gpus(node)] == [("0000:05:00.0", None)]


@pytest.mark.parametrize(("config", "wanted"), [
    (b"\xff" * 64, False), (b"\xde\x10\xb9\x26" + bytes(60), True), (b"\xff\xff", None), (None, None)])
def test_whether_it_answers(tmp_path: Path, config: bytes | None, wanted: bool | None) -> None:
    node = epyc(tmp_path)
    node.function("0000:05:00.0", "pci0000:00", "nvidia", 0, VIDEO)
    path = tmp_path / "sys/bus/pci/devices/0000:05:00.0/config"
    if config is None:
        path.unlink()
    else:
        path.write_bytes(config)
    assert gpus(node)[0].answers is wanted


def nics(node: GpuNode, rails: list[str], layer: str = "Ethernet") -> tuple[list[str], list[Problem]]:
    problems: list[Problem] = []
    found = bus_io.nics(node.machine(), Sysfs(node.root / "sys"), rails, layer, problems)
    return [one.pci for one in found], problems


def test_nics(tmp_path: Path) -> None:
    node = gb200(tmp_path)
    node.put("/sys/class/infiniband/mlx5_1/ports/1/link_layer", "InfiniBand\n")
    assert nics(node, []) == (["0000:03:00.0", "0010:03:00.0", "0012:03:00.0"], [])
    assert nics(node, [], "InfiniBand") == (["0002:03:00.0"], [])
    # A rail is a rail whatever it is; another one is said to be missing.
    found, problems = nics(node, ["0006:03:00.0", "0002:03:00.0", "0099:03:00.0"])
    assert found == ["0002:03:00.0", "0006:03:00.0"]
    assert [one.object for one in problems] == ["rail 2"]


def test_driven(tmp_path: Path) -> None:
    node, problems = l40s(tmp_path), []  # type: tuple[GpuNode, list[Problem]]
    procfs = Sysfs(tmp_path / "proc")
    found = bus_io.driven(procfs, problems)
    assert found is not None and [one.minor for one in found] == [0, 1, 2, 3]
    # The file of a GPU in trouble may be blank: it is named, and the rest of it is not known.
    node.put("/proc/driver/nvidia/gpus/0000:42:00.0/information", "")
    again = bus_io.driven(procfs, problems)
    assert again is not None and again[0] == Driven("0000:42:00.0")
    assert [one.got for one in problems] == ["no line Bus Location"]


def test_without_the_driver(tmp_path: Path) -> None:
    assert bus_io.driven(Sysfs(epyc(tmp_path).root / "proc"), []) is None


def test_holders_that_cannot_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = l40s(tmp_path)
    (tmp_path / "proc/77/fd").mkdir(parents=True)
    monkeypatch.setattr(idle_io, "open_files", lambda folder: None)
    assert bus_io.holders(node.machine()) == ((), 1)
