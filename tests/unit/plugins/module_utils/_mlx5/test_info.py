# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import info
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.info import NodeClass
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Device

GEN5: dict[str, t.Any] = {"current_speed_gts": 32.0, "current_width": 16, "max_speed_gts": 32.0, "max_width": 16}


@pytest.mark.parametrize(("rail", "excluded", "want"), [
    (0, None, "rail"), (0, "carries the default route", "rail"), (None, None, "unused"),
    (None, "is a member of the bridge br0; carries the default route", "management"),
    (None, "carries the SSH connection (192.0.2.1)", "management"),
    (None, "carries a network file system (server 192.0.2.9)", "excluded"),
])
def test_role(rail: int | None, excluded: str | None, want: str) -> None:
    assert info.role(rail, excluded) == want


@pytest.mark.parametrize(("label", "alone", "want"), [
    ("p0", True, "uplink"), ("p1", False, "uplink"), ("p0s1", False, "uplink"), ("pf0vf3", False, "vf_representor"),
    ("c1pf0vf3", False, "vf_representor"), ("pf0sf88", False, "sf_representor"), ("pf0hpf", False, "other"),
    ("pf0", False, "pf_representor"), ("", True, "uplink"), ("", False, "other"),
])
def test_kinds_of_netdevs(label: str, alone: bool, want: str) -> None:
    assert info.netdev_kind(label, alone) == want


def test_speed_and_width() -> None:
    assert [info.speed_gts(text) for text in ("32.0 GT/s PCIe", "8 GT/s", "2.5 GT/s PCIe", "Unknown", "")] == [
        32.0, 8.0, 2.5, None, None]
    assert [info.width(text) for text in ("16", "0", "255", "", "x")] == [16, None, None, None, None]


@pytest.mark.parametrize(("change", "text"), [
    ({"current_speed_gts": 16.0}, "PCIe link of A: got 16 GT/s x16, wanted at least 32 GT/s x16, as the class says "
                                  "(the device can do 32 GT/s x16; look at"),
    ({"current_width": 8}, "got 32 GT/s x8, wanted at least 32 GT/s x16"),
    ({"current_speed_gts": None, "current_width": None}, "got unknown speed x?, wanted at least 32 GT/s x16"),
])
def test_a_link_below_the_class(change: dict[str, t.Any], text: str) -> None:
    found = info.pcie_finding("A", {**GEN5, **change}, NodeClass(32.0, 16))
    assert found is not None and text in found.text()


@pytest.mark.parametrize("wanted", [NodeClass(32.0, 16), NodeClass(16.0, 8), NodeClass(), NodeClass(pcie_width=16)])
def test_a_link_that_is_good_enough(wanted: NodeClass) -> None:
    assert info.pcie_finding("A", GEN5, wanted) is None


def test_whose_links_are_judged() -> None:
    devices = [Device("A"), Device("B"), Device("C", is_vf=True)]
    wanted = NodeClass(32.0)
    assert len(info.pcie_findings(devices, {}, ["B"], wanted)) == 1
    assert len(info.pcie_findings(devices, {}, [], wanted)) == 2
    assert info.pcie_findings(devices, {"A": GEN5, "B": GEN5}, [], wanted) == []
