# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.render_nodes import Findings, Node, node

from .fleet import EPYC, GB200, L40S, record

TRAY = record("aarch64", 2, 144, 144, 982_400, [0, 0, 1, 1])


SHAPE: dict[str, t.Any] = GB200["slurm_node"]  # type: ignore[assignment]


def make(values: t.Mapping[str, t.Any], have: t.Mapping[str, t.Any] | None, reserve: int = 2048,
         **more: t.Any) -> tuple[Node | None, list[str]]:
    found = Findings()
    made = node("n1", {**values, **more}, have, reserve, "leaf1", found)
    return made, [f"{finding.severity}: {finding.text()}" for finding in found.all()]


def test_the_class_says_all() -> None:
    made, findings = make(GB200, None, nvlink_domain="nvl1")
    assert findings == []
    assert made == Node("n1", "gb200", "aarch64", 2, 72, 1, 978_944, 4, "gb200",
                        tuple(f"/dev/nvidia{number}" for number in range(4)),
                        ("0-71", "0-71", "72-143", "72-143"), "nvl1", "leaf1", "", 18)
    assert made.cpus == 144 and made.features == ("gb200", "arm64", "nvl1")


def test_the_record_says_what_the_class_does_not() -> None:
    made, findings = make(L40S, record("x86_64", 2, 64, 128, 515_000, [0, 0, 1, 1]))
    assert findings == [] and made is not None
    assert (made.sockets, made.cores_per_socket, made.threads_per_core, made.memory_mib) == (2, 32, 2, 512_000)
    assert made.cores == ("0-31", "0-31", "32-63", "32-63") and made.features == ("l40s", "amd64")


@pytest.mark.parametrize(("cpu", "gpu_nodes"), [
    # NPS4: four NUMA nodes in each of two sockets, so the node's number is not the socket's.
    ({"numa_nodes": 8}, [0, 1, 2, 3]), ({}, [0, 0, None, 1]), ({}, [0, 0, 1]), ({}, [0, 0, 1, 2]),
])
def test_no_cores_where_they_would_be_a_guess(cpu: dict[str, t.Any], gpu_nodes: list[int]) -> None:
    have = record("x86_64", 2, 64, 128, 515_000, gpu_nodes)
    made, _findings = make(L40S, {**have, "cpu": {**have["cpu"], **cpu}})
    assert made is not None and made.cores == () and made.gpus == 4


def test_a_defect_is_not_followed() -> None:
    """Neither GPUs that are gone nor cores that are switched off shrink what Slurm shall check."""
    made, findings = make(GB200, record("aarch64", 1, 72, 72, 490_000, [0, 1]), nvlink_domain="nvl1")
    whole, _none = make(GB200, TRAY, nvlink_domain="nvl1")
    assert made == whole
    assert [finding.partition(" (")[0] for finding in findings] == [
        "warning: n1: sockets in the fleet record: got 1, wanted 2",
        "warning: n1: MiB of memory in the fleet record: got 490000, wanted 981000 or more",
        "warning: n1: GPUs in the fleet record: got 2, wanted 4"]


@pytest.mark.parametrize("have", [TRAY, record("aarch64", 2, 144, 144, 981_000, [0, 0, 1, 1])])
def test_what_is_as_it_should_be_is_no_finding(have: dict[str, t.Any]) -> None:
    assert make(GB200, have)[1] == []


def test_nothing_known_refuses() -> None:
    made, findings = make(L40S, None)
    assert made is None
    assert findings == ["error: n1: facts for NodeName: got no sockets, cores_per_socket, threads_per_core, memory_mib"
                        ", wanted them in the class or the record (run playbooks/discover.yml, or set it in slurm_node "
                        "of the class or the host)"]
    made, findings = make(EPYC, record("x86_64", 1, 128, 256, 0))
    assert made is None and "got no memory_mib" in findings[0]


@pytest.mark.parametrize("cpu", [{"sockets": None}, {"cores": 63}, {"threads": 100}, {}, {"cores": True}])
def test_cpus_that_do_not_divide_are_not_known(cpu: dict[str, t.Any]) -> None:
    have = record("x86_64", 2, 64, 128, 515_000)
    broken = {**have, "cpu": {**have["cpu"], **cpu} if cpu else None}
    assert make(L40S, broken)[0] is None


def test_memory_keeps_a_margin_and_whole_gib() -> None:
    """Kernels of one class differ by some MiB; their nodes must not have two lines."""
    same = {made.memory_mib for total in (515_000, 515_003, 514_990)
            if (made := make(L40S, record("x86_64", 2, 64, 128, total))[0])}
    assert same == {512_000}
    small = make(L40S, record("x86_64", 2, 64, 128, 3000))[0]
    assert small is not None and small.memory_mib == 952
    made, findings = make(L40S, record("x86_64", 2, 64, 128, 2000))
    assert made is None and "RealMemory: got 2000 MiB less the reserve of 2048" in findings[-1]


def test_device_files() -> None:
    made, _findings = make(GB200, None, slurm_node={**SHAPE, "gpu_files": "/dev/nvidia[4-7]"})
    assert made is not None and made.gpu_files[0] == "/dev/nvidia4"
    _made, findings = make(GB200, None, slurm_node={**SHAPE, "gpu_files": "nvidia[0-3]"})
    assert "error: n1: slurm_node.gpu_files: got nvidia[0-3], wanted device files" in findings[0]
    one, _findings = make(L40S, record("x86_64", 1, 64, 64, 515_000, [0]), node_class_gpu_count=1)
    assert one is not None and one.gpu_files == ("/dev/nvidia0",) and one.cores == ("0-63",)


def test_a_host_without_a_class_has_what_the_record_says() -> None:
    made, findings = make({}, record("x86_64", 1, 8, 16, 64_000, [0]))
    assert findings == [] and made is not None
    assert (made.gpus, made.gres_type, made.features) == (1, "nvidia", ("amd64",))


def test_an_unknown_architecture() -> None:
    assert "error: n1: architecture: got riscv64, wanted aarch64 or x86_64" in make(
        {}, record("riscv64", 1, 8, 8, 64_000))[1][0]


def test_equal_findings_are_one() -> None:
    found = Findings()
    for name in ("n01", "n02", "n04"):
        node(name, L40S, None, 0, "", found)
    (only,) = found.all()
    assert only.object == "n[01-02,04]: facts for NodeName"
