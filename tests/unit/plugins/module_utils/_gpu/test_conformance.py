# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collected samples of GPU tools against what their index expects; skipped where there are none."""
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import judge, parse, topo, xid_history
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.judge import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Mode, Pci, Remap, Temperature, Wanted
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import parse as host_parse

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
HEAD = "==============NVSMI LOG==============\nGPU 00000008:01:00.0\n"
PCI = "0008:01:00.0"


def text(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


def fabric(name: str, pci_id: str = "10de:2941") -> list[str]:
    _version, smi = parse.gpus(HEAD + text(name))
    node = Node(pcis=(Pci(PCI, pci_id, driver="nvidia"),), smi=smi, kinds={PCI: judge.kind(Pci(PCI, pci_id), Wanted())})
    return [one.got for one in judge.findings(node, Wanted())]


def test_an_h100_of_branch_535() -> None:
    version, found = parse.gpus(text("nvidia-smi_q-1"))
    one = found[0]
    assert (version, one.pci, one.persistence) == ("535.183.01", "0000:53:00.0", True)
    assert (one.memory_total_mib, one.bar1_total_mib, one.mig) == (81559, 131072, Mode("Disabled", "Disabled"))
    assert one.temperature == Temperature("margin", 36, 50, 44)
    assert (one.events, one.remap, one.ecc) == (("Idle",), Remap(0, 0, False, False), Mode("Enabled", "Enabled"))
    assert one.clocks_mhz["max_sm"] == 1980 and one.ecc_errors["volatile_uncorrectable"] == 0
    node = Node(pcis=(Pci(one.pci, "10de:2330", driver="nvidia"),), smi=found, kinds={one.pci: "nvswitch"})
    assert judge.findings(node, Wanted()) == [], "State and Status alone are right on HGX"


def test_an_a10_with_rows_to_remap() -> None:
    _version, found = parse.gpus(text("nvidia-smi_q-2"))
    assert found[0].temperature == Temperature("absolute", 33, 58, None)
    node = Node(pcis=(Pci(found[0].pci, "10de:2236", driver="nvidia"),), smi=found)
    assert [one.got for one in judge.findings(node, Wanted())] == ["row remapping pending"]


def test_fabric() -> None:
    assert fabric("nvidia-smi_q_fabric-1") == ["Unhealthy (Bandwidth Full)"]
    assert fabric("nvidia-smi_q_fabric-2") == ["state Completed, status Insufficient Resources"]
    # Without its cluster in the sample; the partition 32766 itself is the default one.
    assert fabric("nvidia-smi_q_fabric-3") == ["clique 32766, cluster None"]
    assert fabric("nvidia-smi_q_fabric-2", "10de:26b9") == []


def test_an_error_on_stdout() -> None:
    said = text("nvidia-smi_error-1")
    assert (parse.error_state(0, said), parse.library_version(said)) == (18, "580.178")


def test_nvlinks() -> None:
    (links,) = parse.nvlinks(text("nvidia-smi_nvlink-1")).values()
    assert links == dict.fromkeys(range(12), 25.0)


@pytest.mark.parametrize(("number", "rows", "first"), [
    (1, 2, {"NIC5": "SYS", "NIC6": "PXB"}), (2, 4, {"mlx5_0": "SYS", "mlx5_5": "SYS"}), (3, 8, {"NIC0": "PIX"}),
    (4, 4, {"NIC11": "PIX", "NIC12": "NODE"}), (5, 6, {"NIC0": "NODE", "NIC4": "PHB"}), (6, 4, {"NIC1": "PXB"})])
def test_topology(number: int, rows: int, first: dict[str, str]) -> None:
    found = topo.matrix(text(f"nvidia-smi_topo-{number}"))
    assert len(found) == rows
    assert {key: found[0][key] for key in first} == first


def test_xids() -> None:
    (entry,) = xid_history.history(xid_history.events(text("dmesg_xid-1")))
    assert (entry["pci"], entry["xid"], entry["count"], entry["last"]) == (
        "0000:9b:00.0", 119, 5, "Sun Feb 23 16:30:13 2025")
    for name in ("dmesg_xid-2", "dmesg_peermem-1"):
        assert xid_history.events(text(name)) == ()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_versions(number: int) -> None:
    found = host_parse.nvidia_version(text(f"proc_driver_nvidia_version-{number}"))
    assert found["flavour"] == ("proprietary" if number == 2 else "open")
