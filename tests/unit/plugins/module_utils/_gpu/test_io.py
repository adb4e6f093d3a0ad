# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole readings of nodes of the three classes, and of nodes in trouble."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins import gpu_node
from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.holders import process, slurm_step

GB200: dict[str, t.Any] = {"gpu_count": 4, "gpu_pci_ids": ("10de:2941",), "memory_total_mib": 189471, "flavour": "open",
                           "persistence": True, "mig": False, "driver_version": "580.126.09"}
L40S: dict[str, t.Any] = {"gpu_count": 4, "gpu_pci_ids": ("10de:26b9",), "memory_total_mib": 46068}
RAILS = ["0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0"]
HUNG = Result((), "timeout", None, "", "no answer within 30 s; ended by us")
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178\n"


def words(found: t.Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    return [(one["object"], one["got"]) for one in found]


def smi(node: gpu_node.GpuNode, answer: Result) -> None:
    node.override[("nvidia-smi",)] = lambda call: answer


def test_a_gb200_tray(tmp_path: Path) -> None:
    node = gpu_node.gb200(tmp_path)
    found = node.read(RAILS, **GB200)
    assert (found["findings"], found["problems"], found["needs_root"]) == ([], [], [])
    assert found["count"] == {"pci": 4, "driver": 4, "nvidia_smi": 4, "wanted": 4}
    assert [(gpu["pci"], gpu["minor"], gpu["numa_node"], gpu["nearest_nic"]) for gpu in found["gpus"]] == [
        ("0008:01:00.0", 0, 0, "0000:03:00.0"), ("0009:01:00.0", 1, 0, "0002:03:00.0"),
        ("0018:01:00.0", 2, 1, "0010:03:00.0"), ("0019:01:00.0", 3, 1, "0012:03:00.0")]
    one = found["gpus"][0]
    assert (one["board"], one["name"], one["memory_total_mib"], len(one["nvlinks"])) == (
        "nvl", "NVIDIA GB200", 189471, 18)
    assert one["fabric"]["clique_id"] == 1 and one["fabric"]["cluster_uuid"] == gpu_node.UUID
    assert one["temperature"] == {"family": "margin", "current_c": 36, "margin_c": 50, "memory_c": 44}
    assert one["events"] == ["Idle"]
    assert ("nvidia-smi", "topo", "-m") not in node.calls
    driver = found["driver"]
    assert (driver["loaded"], driver["on_disk"], driver["userspace"]) == ("580.126.09",) * 3
    assert (driver["flavour"], driver["on_disk_flavour"], driver["references"], driver["users"]) == (
        "open", "open", 12, ["nvidia_uvm"])
    assert [one["name"] for one in driver["packages"]] == ["nvidia-imex", "nvidia-open"]


def test_without_rails_the_bluefield_is_none(tmp_path: Path) -> None:
    assert list(gpu_node.gb200(tmp_path).read()["gpus"][0]["nics"]) == RAILS


def test_an_l40s_node(tmp_path: Path) -> None:
    node = gpu_node.l40s(tmp_path)
    found = node.read(["0000:41:00.0", "0000:84:00.0"], **L40S)
    assert (found["findings"], found["problems"]) == ([], [])
    assert [(gpu["nics"], gpu["nearest_nic"]) for gpu in found["gpus"]] == [
        ({"0000:41:00.0": "PHB", "0000:84:00.0": "SYS"}, "0000:41:00.0")] * 2 + [
        ({"0000:41:00.0": "SYS", "0000:84:00.0": "PIX"}, "0000:84:00.0")] * 2
    assert (found["gpus"][0]["mig"], found["gpus"][0]["nvlinks"]) == ({"current": None, "pending": None}, None)
    assert ("nvidia-smi", "nvlink", "-s") not in node.calls
    assert found["driver"]["flavour"] == "proprietary"


def test_topo_contradicts_the_tree(tmp_path: Path) -> None:
    node = gpu_node.l40s(tmp_path)
    node.topo = gpu_node.TOPO.replace("GPU2\tSYS\tSYS\t X \tPIX\tSYS\tPIX", "GPU2\tSYS\tSYS\t X \tPIX\tSYS\tPHB")
    assert words(node.read()["findings"]) == [
        ("path of GPU 0000:85:00.0 and NIC 0000:84:00.0", "PHB from nvidia-smi topo")]


def test_topo_fails(tmp_path: Path) -> None:
    """With a siw device nvidia-smi exits 255 [mlx5-roce.md 6.3]."""
    node = gpu_node.l40s(tmp_path)
    node.override[("nvidia-smi", "topo")] = lambda call: failed(255, "Failed to run topology matrix")
    found = node.read()
    assert (found["findings"], found["problems"][0]["object"]) == ([], "nvidia-smi topo -m")
    assert found["gpus"][2]["nearest_nic"] == "0000:84:00.0"


@pytest.mark.parametrize("wanted", [{}, {"gpu_count": 0}])
def test_a_node_without_a_gpu_is_asked_nothing(tmp_path: Path, wanted: dict[str, t.Any]) -> None:
    node = gpu_node.epyc(tmp_path)
    found = node.read(**wanted)
    assert (found["gpus"], found["findings"], found["problems"], node.calls) == ([], [], [], [])
    assert found["count"]["pci"] == 0 and found["driver"]["loaded"] is None


def test_a_gpu_class_without_any_gpu(tmp_path: Path) -> None:
    found = gpu_node.epyc(tmp_path).read(**L40S)
    assert words(found["findings"]) == [("GPUs on the PCI bus", "0: none")]


@pytest.mark.parametrize(("answer", "object_", "got"), [
    (Result((), "missing"), "nvidia-smi -q", "the program is not installed"),
    (HUNG, "nvidia-smi -q", "no answer within 30 s; ended by us"),
    (failed(1, "Segmentation fault"), "nvidia-smi -q", "exit status 1: Segmentation fault"),
    (ok("Something new\n"), "nvidia-smi -q", "output that cannot be read (no heading NVSMI LOG): Something new"),
    (ok("====NVSMI LOG====\nAttached GPUs : 4\n"), "nvidia-smi -q", "no block GPU in it"),
])
def test_nvidia_smi_cannot_be_used(tmp_path: Path, answer: Result, object_: str, got: str) -> None:
    """The rest is read all the same, and nothing is made up."""
    node = gpu_node.gb200(tmp_path)
    smi(node, answer)
    found = node.read(RAILS, **GB200)
    assert found["findings"] == []
    assert words(found["problems"]) == [(object_, got)]
    assert [call for call in node.calls if call[0] == "nvidia-smi"] == [("nvidia-smi", "-q")]
    one = found["gpus"][0]
    assert (one["name"], one["in_driver"], one["in_nvidia_smi"], one["fabric"]) == ("NVIDIA GB200", True, None, None)


@pytest.mark.parametrize(("answer", "got"), [
    (Result((), "failed", 18, MISMATCH), "driver and library have different versions"),
    (ok(MISMATCH), "driver and library have different versions"),
    (Result((), "failed", 9, "", ""), "the driver does not answer"),
    (ok("No devices were found\n"), "no devices were found"),
    (Result((), "failed", 15, "", "Unable to determine the device handle: GPU is lost."),
     "a GPU has fallen off the bus"),
])
def test_nvidia_smi_says_what_is_wrong(tmp_path: Path, answer: Result, got: str) -> None:
    """By its exit status, and by its words where it exits 0."""
    node = gpu_node.gb200(tmp_path)
    smi(node, answer)
    found = node.read(**GB200)
    assert (words(found["findings"]), found["problems"]) == ([("nvidia-smi", got)], [])


def test_the_library_of_a_mismatch(tmp_path: Path) -> None:
    node = gpu_node.gb200(tmp_path)
    (tmp_path / "usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1").unlink()
    smi(node, Result((), "failed", 18, MISMATCH))
    found = node.read()
    assert found["driver"]["userspace"] == "580.178"
    assert [one["object"] for one in found["findings"]] == ["nvidia-smi", "libnvidia-ml"]


def test_three_of_four_in_nvidia_smi(tmp_path: Path) -> None:
    node = gpu_node.gb200(tmp_path)
    del node.cards["0018:01:00.0"]
    found = node.read(**GB200)
    assert words(found["findings"]) == [("GPU 0018:01:00.0", "not among the 3 of nvidia-smi")]
    assert found["count"] == {"pci": 4, "driver": 4, "nvidia_smi": 3, "wanted": 4}
    assert [one["in_nvidia_smi"] for one in found["gpus"]] == [True, True, False, True]


def test_a_gpu_off_the_bus(tmp_path: Path) -> None:
    """Its function is still in sysfs, and answers all ones; the kernel's log says why."""
    node = gpu_node.gb200(tmp_path)
    (tmp_path / "sys/bus/pci/devices/0018:01:00.0/config").write_bytes(b"\xff" * 64)
    (tmp_path / "proc/driver/nvidia/gpus/0018:01:00.0/information").unlink()
    (tmp_path / "proc/driver/nvidia/gpus/0018:01:00.0").rmdir()
    node.journal = ("1796090588.123456 gb1 kernel: NVRM: Xid (PCI:0018:01:00): 79, pid=7, name=python3, GPU has fallen "
                    "off the bus.\n")
    smi(node, Result((), "failed", 15, "", "GPU is lost."))
    found = node.read(**GB200)
    assert words(found["findings"]) == [
        ("GPU 0018:01:00.0", "configuration space of all ones"),
        ("GPU 0018:01:00.0", "not in /proc/driver/nvidia/gpus"),
        ("nvidia-smi", "a GPU has fallen off the bus"),
        ("GPU 0018:01:00.0", "Xid 79 (GPU has fallen off the bus) 1 times since boot, last 2026-12-01T02:03:08Z: "
                             "pid=7, name=python3, GPU has fallen off the bus.")]


def test_the_driver_is_not_loaded(tmp_path: Path) -> None:
    """Nor is it loaded by a question: nvidia-smi of root would."""
    node = gpu_node.gb200(tmp_path)
    for path in ("proc/driver/nvidia", "sys/module/nvidia"):
        (tmp_path / path).rename(tmp_path / "gone" if "proc" in path else tmp_path / "gone2")
    found = node.read(**GB200)
    assert words(found["findings"]) == [("module nvidia", "not loaded")]
    assert found["count"]["driver"] is None and found["parameters"]["in_force"] is None
    assert not [call for call in node.calls if call[0] == "nvidia-smi"]


def test_holders(tmp_path: Path) -> None:
    node = gpu_node.gb200(tmp_path)
    slurm_step(tmp_path, 4711, "python3", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia0")
    process(tmp_path, 900, "nvidia-persiste", "/dev/nvidia-caps/nvidia-cap1")
    process(tmp_path, 901, "bash", "/dev/null", "/srv/dev/nvidia.txt")
    found = node.read()["holders"]
    assert found == [
        {"pid": 900, "comm": "nvidia-persiste", "job": None, "files": ["/dev/nvidia-caps/nvidia-cap1"],
         "is_service": True},
        {"pid": 4711, "comm": "python3", "job": "Slurm job 4242 step 0", "files": ["/dev/nvidia0", "/dev/nvidiactl"],
         "is_service": False}]


def test_a_rail_that_is_not_there(tmp_path: Path) -> None:
    found = gpu_node.l40s(tmp_path).read(["0000:41:00.0", "0000:99:00.0"])
    assert words(found["problems"]) == [("rail 1", "no mlx5 device 0000:99:00.0")]
