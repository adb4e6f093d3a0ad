# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import model
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.model import ClassError, Port, node_class

from tests.unit.plugins.module_utils._discover.case import classes


def test_the_agreed_variables() -> None:
    found = {one.name: one for one in classes()}
    assert set(found) == {"gb200", "l40s", "epyc9754"}
    assert (found["gb200"].gpu_pci_ids, found["gb200"].nvlink_domain_trays) == (("10de:2941",), 18)
    assert (found["epyc9754"].gpu_pci_ids, found["epyc9754"].cpu_cores) == ((), 128)


@pytest.mark.parametrize(("data", "text"), [
    ([], "x.yml: got list"), ({}, "node_class_name: got None"),
    ({"node_class_name": "unknown"}, "wanted the name of a group"),
    ({"node_class_name": "a-b"}, "node_class_name: got 'a-b'"),
    ({"node_class_name": "a", "node_class_gpu_count": "4"}, "node_class_gpu_count: got '4', wanted a whole number"),
    ({"node_class_name": "a", "node_class_gpu_count": True}, "node_class_gpu_count"),
    ({"node_class_name": "a", "node_class_nic_pci_ids": [1]}, "node_class_nic_pci_ids: got [1], wanted a list"),
    ({"node_class_name": "a", "node_class_rail_pcie_speed_gts": "x"}, "wanted a number"),
])
def test_a_file_that_is_no_class(data: t.Any, text: str) -> None:
    with pytest.raises(ClassError) as caught:
        node_class("x.yml", data)
    assert text in str(caught.value)


def test_what_a_class_does_not_say() -> None:
    assert node_class("x", {"node_class_name": "a", "other": 1}).rail_count == 0


def test_pci_order_is_by_number() -> None:
    assert sorted(["0012:03:00.0", "0000:c1:00.0", "0000:41:00.1", "0000:41:00.0"], key=model.pci_order) == [
        "0000:41:00.0", "0000:41:00.1", "0000:c1:00.0", "0012:03:00.0"]


@pytest.mark.parametrize(("pci_id", "is_vf", "wanted"), [
    ("15b3:1021", False, True), ("15b3:a2dc", False, False), ("15b3:101e", False, False), ("15b3:1021", True, False),
    ("15b3:0218", False, False)])
def test_what_may_be_a_rail(pci_id: str, is_vf: bool, wanted: bool) -> None:
    assert Port("0000:03:00.0", pci_id, is_vf).is_rail_hardware is wanted


@pytest.mark.parametrize(("address", "subnet", "number"), [
    ("198.51.100.7/24", "198.51.100.0/24", 7), ("198.51.100.4/31", "198.51.100.4/31", None), (None, None, None)])
def test_subnet_and_number(address: str | None, subnet: str | None, number: int | None) -> None:
    port = Port("0000:03:00.0", "15b3:1021", address=address)
    assert (port.subnet, port.number) == (subnet, number)
