# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import files

from tests.unit.plugins.module_utils._roce.conftest import request_of
from tests.unit.plugins.module_utils._roce.fake import NETDEV, PCI, RDMA, Qos

WANT = request_of().wants[0].state


def read(machine: Machine, device: str | None = RDMA) -> files.Found:
    return files.read(machine, PCI, NETDEV, device, WANT)


def test_inbox_has_cnp_and_the_tos_of_rdma_cm(qos: Qos) -> None:
    found = read(qos.node.machine())
    assert found.state == {"cnp": {"dscp": 48, "priority": 6}, "cm_tos": 0} and found.problems == []
    assert set(found.unsupported) == {"ecn", "traffic_class"}
    assert "ROCE_CC_PRIO_MASK_P1" in found.unsupported["ecn"] and "NCCL_IB_TC" in found.unsupported["traffic_class"]


def test_ofed_has_all(ofed: Qos) -> None:
    found = read(ofed.node.machine())
    assert found.unsupported == {}
    assert found.state["ecn"] == {"priority": 3, "np": True, "rp": True} and found.state["traffic_class"] == 0
    assert found.cnp_files[0] == f"/sys/class/net/{NETDEV}/ecn/roce_np/cnp_dscp"


def test_an_empty_ecn_file_is_unknown_and_not_off(ofed: Qos) -> None:
    ofed.node.put(f"/sys/class/net/{NETDEV}/ecn/roce_rp/enable/3", "")
    assert "could not ask the firmware" in read(ofed.node.machine()).unsupported["ecn"]


def test_without_debugfs_configfs_or_rdma_device_it_says_why(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert {group: text.split(":")[0] for group, text in read(machine).unsupported.items()} == {
        "ecn": files._NO_ECN.split(":")[0], "cnp": files._NO_CNP.split(":")[0], "cm_tos": "no configfs folder rdma_cm",
        "traffic_class": files._NO_TC}
    found = read(machine, None)
    assert {found.unsupported["cm_tos"], found.unsupported["traffic_class"]} == {"the port has no RDMA device"}


def test_text_that_is_no_number_is_a_problem(ofed: Qos) -> None:
    ofed.node.put(f"/sys/class/infiniband/{RDMA}/tc/1/traffic_class", "garbage\n")
    ofed.node.put(f"/sys/class/net/{NETDEV}/ecn/roce_np/cnp_dscp", "many\n")
    assert [one.object.split()[0] for one in read(ofed.node.machine()).problems] == ["cnp", "traffic_class"]


def test_a_folder_that_we_made_goes_away_and_another_stays(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "sys/kernel/config/rdma_cm").mkdir(parents=True)
    folder = tmp_path / "sys/kernel/config/rdma_cm/mlx5_0"
    for there in (False, True):
        if there:
            folder.mkdir()
        with files.cm_folder(machine, f"{files.CONFIGFS}/mlx5_0/ports/1/default_roce_tos"):
            assert folder.exists()
        assert folder.exists() == there
    with files.cm_folder(machine, "/sys/class/net/rail0/ecn/roce_np/cnp_dscp"):
        assert not (tmp_path / "sys/class").exists()


def test_write_takes_an_existing_file_and_makes_none(tmp_path: Path) -> None:
    path = "/sys/class/net/rail0/ecn/roce_np/enable/3"
    with pytest.raises(FileNotFoundError):
        files.write(Machine(tmp_path), path, "1")
    (tmp_path / path[1:]).parent.mkdir(parents=True)
    (tmp_path / path[1:]).write_text("0\n", encoding="ascii")
    files.write(Machine(tmp_path), path, "1")
    assert (tmp_path / path[1:]).read_text(encoding="ascii") == "1\n"
    assert os.listdir((tmp_path / path[1:]).parent) == ["3"]


@pytest.mark.parametrize(("group", "count"), [("ecn", 2), ("cnp", 2), ("cm_tos", 1), ("traffic_class", 1)])
def test_unknown_values_are_all_written(group: str, count: int) -> None:
    port: t.Any = files.Port(PCI, NETDEV, RDMA, cnp_files=("/a", "/b"))
    assert len(files.writes(port, group, WANT)) == count
