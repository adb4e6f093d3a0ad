# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import (
    Device,
    Node,
    Port,
    netdev_mtu_needed_bytes,
    rdma_mtu_bytes,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import Networkd


@pytest.mark.parametrize(("netdev", "rdma"), [
    (9000, 4096), (4192, 4096), (4191, 2048), (2144, 2048), (2143, 1024), (1500, 1024), (1120, 1024), (1119, 512),
    (608, 512), (607, 256), (352, 256), (351, 0), (68, 0),
])
def test_rdma_mtu(netdev: int, rdma: int) -> None:
    assert rdma_mtu_bytes(netdev) == rdma


def test_needed_mtu() -> None:
    assert netdev_mtu_needed_bytes(4096) == 4192


def test_data_has_rails_and_all_problems() -> None:
    problems = [Problem(name, "b", "c") for name in "wxyz"]
    node = Node((Device("0000:03:00.0", ports=(Port(1),)), Device("0000:04:00.0")),
                Networkd("active", problem=problems[3]), (problems[0],), (problems[1],), (problems[2],))
    data = node.as_data(["0000:04:00.0", "0000:05:00.0"])
    assert [device["rail"] for device in data["devices"]] == [None, 0]
    assert [problem["object"] for problem in data["problems"]] == ["w", "x", "y", "z", "0000:05:00.0"]


def test_port_of_a_device() -> None:
    node = Node((Device("0000:03:00.0", ports=(Port(1),)), Device("0000:04:00.0")))
    assert node.port("0000:03:00.0") == Port(1)
    assert node.port("0000:04:00.0") is None
    assert node.port("none") is None
