# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import topo
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Nic, Pci

from tests.unit.plugins.gpu_node import TOPO

SWITCH = ("pci0000:80", "0000:80:01.1", "0000:81:00.0")


def gpu(*path: str, node: int | None = 0, pci: str = "0000:85:00.0") -> Pci:
    return Pci(pci, "10de:26b9", node, "nvidia", True, path)


def nic(*path: str, node: int | None = 0, pci: str = "0000:84:00.0", rail: int | None = None) -> Nic:
    return Nic(pci, f"mlx5_{pci[5:7]}", "Ethernet", node, path, rail)


@pytest.mark.parametrize(("one", "other", "wanted"), [
    (gpu(*SWITCH, "0000:82:00.0"), nic(*SWITCH, "0000:82:02.0"), "PIX"),
    # A switch behind a switch.
    (gpu(*SWITCH, "0000:82:00.0", "0000:83:00.0", "0000:84:00.0"), nic(*SWITCH, "0000:82:02.0"), "PXB"),
    (gpu("pci0000:40", "0000:40:01.1"), nic("pci0000:40", "0000:40:05.1"), "PHB"),
    (gpu("pci0000:40", "0000:40:01.1"), nic("pci0000:60", "0000:60:05.1"), "NODE"),
    (gpu("pci0000:40", "0000:40:01.1"), nic("pci0000:80", "0000:80:05.1", node=1), "SYS"),
    (gpu("pci0008:00", "0008:00:00.0"), nic("pci0000:00", "0000:00:00.0"), "NODE"),
    (gpu("pci0000:40", node=None), nic("pci0000:80"), None), (gpu(), nic(), "NODE"), (gpu(), nic(node=None), None),
])
def test_path(one: Pci, other: Nic, wanted: str | None) -> None:
    assert topo.path(one, other) == wanted


def test_of_equals_the_one_that_is_less_used() -> None:
    gpus = [gpu("pci0000:40", f"0000:40:0{n}.1", pci=f"0000:4{n}:00.0") for n in (1, 2, 3)]
    nics = [nic("pci0000:40", f"0000:40:0{n}.1", pci=f"0000:4{n}:00.0") for n in (8, 9)]
    assert [one.nearest for one in topo.pair(gpus, nics, {})] == ["0000:48:00.0", "0000:49:00.0", "0000:48:00.0"]
    # Rails stand before addresses.
    rails = [nic(pci="0000:48:00.0", rail=1), nic(pci="0000:49:00.0", rail=0)]
    assert [one.nearest for one in topo.pair(gpus, rails, {})] == ["0000:49:00.0", "0000:48:00.0", "0000:49:00.0"]


def test_on_nvl_the_node_decides() -> None:
    """In a tree that would say PIX for one of them; NUMA is what tells on GB200."""
    gpus = [gpu("pci0008:00", "a", pci="0008:01:00.0"), gpu("pci0018:00", "b", node=1, pci="0018:01:00.0")]
    nics = [nic("pci0010:00", "c", node=1, pci="0000:03:00.0"), nic("pci0000:00", "d", pci="0010:03:00.0")]
    kinds = {one.pci: "nvl" for one in gpus}
    assert [one.nearest for one in topo.pair(gpus, nics, kinds)] == [  # type: ignore[arg-type]
        "0010:03:00.0", "0000:03:00.0"]


def test_nothing_to_pair() -> None:
    assert [one.nearest for one in topo.pair([gpu(node=None)], [nic()], {})] == [None]
    assert [one.nearest for one in topo.pair([gpu()], [], {})] == [None]


def test_matrix() -> None:
    rows = topo.matrix(TOPO)
    assert rows[0] == {"mlx5_0": "PHB", "mlx5_1": "SYS"}
    assert rows[3] == {"mlx5_0": "SYS", "mlx5_1": "PIX"}


@pytest.mark.parametrize(("heading", "row", "wanted"), [
    # Run together, without a legend, older names, no affinity cell.
    ("        GPU0    NIC0    NIC1NIC2    CPU Affinity    GPU NUMA ID", "GPU0     X      PIX  NODE SYS   0-15  0  N/A",
     {"NIC0": "PIX", "NIC1": "NODE", "NIC2": "SYS"}),
    ("        GPU0    mlx5_0  mlx5_10CPU Affinity", "GPU0     X      PIX  NODE 0-15",
     {"mlx5_0": "PIX", "mlx5_10": "NODE"}),
    ("\tGPU0\troceP2p3s0\tmlx5_bond_0\tCPU Affinity", "GPU0\t X \tPHB\tSYS\t\t",
     {"roceP2p3s0": "PHB", "mlx5_bond_0": "SYS"}),
])
def test_headings(heading: str, row: str, wanted: dict[str, str]) -> None:
    assert topo.matrix(f"{heading}\n{row}\n") == [wanted]


@pytest.mark.parametrize("text", [
    "", "Failed to run topology matrix", "        GPU0    NIC0\n", "        GPU0    NIC0\nGPU0     X      PIX  NODE\n",
    "        GPU0    eth7\nGPU0     X      PIX\n"])
def test_no_matrix(text: str) -> None:
    with pytest.raises(ValueError):
        topo.matrix(text)


@pytest.mark.parametrize(("theirs", "count"), [
    ("PIX", 0), ("PXB", 0), ("PHB", 1), ("SYS", 1), ("X", 0), ("NV18", 0)])
def test_only_a_switch_is_compared(theirs: str, count: int) -> None:
    near, card = gpu(*SWITCH, "0000:82:00.0"), nic(*SWITCH, "0000:82:02.0")
    found = topo.disagreements([{"mlx5_84": theirs}], [near.pci], topo.pair([near], [card], {}), [card])
    assert len(found) == count
    far = nic("pci0000:40", node=1)
    assert topo.disagreements([{"mlx5_84": "NODE"}], [near.pci], topo.pair([near], [far], {}), [far]) == []
