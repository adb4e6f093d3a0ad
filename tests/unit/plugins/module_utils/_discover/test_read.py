# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import read

from tests.unit.plugins.module_utils._discover.case import tray


def test_a_tray() -> None:
    results = tray()
    results.info["drivers"] = {"nvidia": {"version": "580.126.09"},
                               "mlx5": {"backend": "ofed", "version": "25.10-1.7.1"}}
    results.info["base_os"] = {"version": "7.2.0"}
    results.info["lldp"] = [{"netdev": "rail0", "chassis": "leaf01"}, {"netdev": "rail0", "chassis": "nic-agent"},
                            {"netdev": "rail1", "chassis": None, "chassis_id": "02:00:00:00:01:02"}]
    host = results.host()
    assert (host.system, host.stack) == ("ubuntu 24.04 (BaseOS 7.2.0)", "ofed 25.10-1.7.1, nvidia 580.126.09")
    assert [port.pci for port in host.ports] == ["0000:03:00.0", "0002:03:00.0", "0006:01:00.0", "0010:03:00.0",
                                                 "0012:03:00.0", "0016:01:00.0"]
    first = host.ports[0]
    assert (first.address, first.owner, first.neighbour, first.speed_gbps) == (
        "198.51.0.1/24", "networkd", "leaf01", 400.0)
    assert host.ports[1].neighbour == "02:00:00:00:01:02"


@pytest.mark.parametrize(("info", "error"), [
    (None, "no result"), ({"unreachable": True, "msg": "Failed to\nconnect"}, "unreachable: Failed to connect"),
    ({"failed": True, "msg": "no Python"}, "no Python"), ({}, "host_info gave no result"),
    ({"skipped": True}, "host_info gave no result")])
def test_a_host_that_did_not_answer(info: t.Any, error: str) -> None:
    assert read.host("h", info, None).error == error


def test_what_the_modules_found_is_kept_once() -> None:
    results = tray()
    one = {"object": "ip", "got": "x", "wanted": "y", "hint": "z"}
    results.info["problems"] = [one, {**one, "object": "ibv_devinfo", "got": "the program is not installed"}]
    results.mlx5["problems"] = [one]
    results.info["needs_root"], results.mlx5["needs_root"] = ["lldp"], ["/sys/kernel/debug/x", "lldp"]
    host = results.host()
    assert [finding.object for finding in host.findings] == ["ip"]
    assert host.needs_root == ("lldp", "/sys/kernel/debug/x")


@pytest.mark.parametrize("mlx5", [None, {"failed": True, "msg": "boom"}, {"skipped": True}])
def test_without_mlx5_info_the_cards_are_there_all_the_same(mlx5: t.Any) -> None:
    host = read.host("g1", tray().info, mlx5)
    assert len(host.ports) == 6 and host.ports[0].speed_gbps is None
    assert [finding.object for finding in host.findings] == ["mlx5_info"]


def test_any_shape_is_taken() -> None:
    info = {"os": None, "nics": [1, {"pci": None}], "gpus": "x", "cpu": [], "drivers": None}
    host = read.host("h", info, {"devices": 3})
    assert (host.ports, host.gpus, host.cores, host.stack, host.system) == ((), (), None, "none", "?")
