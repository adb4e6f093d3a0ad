# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a call is done while a port is in use."""
from __future__ import annotations

import dataclasses
import json
import shutil
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Request, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import PENDING_FILE

from tests.unit.plugins.fake import FakeNode, ok
from tests.unit.plugins.holders import process, slurm_step, verbs

UVERBS0 = "/dev/infiniband/uverbs0"
MTU0, MTU1 = (["ip", "link", "set", "dev", rail, "mtu", "4200"] for rail in ("rail0", "rail1"))
FILE0, FILE1 = (["write", f"/etc/systemd/network/20-{rail}.network.d/50-aidc-mtu.conf"] for rail in ("rail0", "rail1"))
WRITE, RELOAD, REMOVE = ["write", PENDING_FILE], ["networkctl", "reload"], ["remove", PENDING_FILE]


def request(node: FakeNode, **fields: t.Any) -> Request:
    return Request(tuple(Want(rail.pci, 4200) for rail in node.rails), **fields)


@pytest.fixture
def busy(node: FakeNode) -> FakeNode:
    verbs(node.root, ["mlx5_0", "rocep3s0f0"])
    process(node.root, 9, "train", UVERBS0)
    return node


def both(node: FakeNode, asked: Request) -> dict[str, t.Any]:
    """Check mode and the run, which must be equal; then the run once more, which must change nothing."""
    predicted = configure(node.machine(), asked, True)
    real = configure(node.machine(), asked, False)
    for key in predicted:
        if key not in ("ports", "excluded"):
            assert predicted[key] == real[key], key
    again = configure(node.machine(), asked, False)
    assert (again["changed"], again["deferred"]) == (False, real["deferred"])
    return real


def test_the_idle_port_is_set_and_the_one_in_use_waits(busy: FakeNode) -> None:
    result = both(busy, request(busy))
    assert result["commands"] == [MTU1, WRITE, FILE1, RELOAD, REMOVE]
    assert result["deferred"] == [{"pci": "0000:03:00.0", "netdev": "rail0", "steps": [MTU0, FILE0],
                                   "holders": ["pid 9 train holds mlx5_0"]}]
    assert [entry["mtu_bytes"] for entry in result["after"]] == [1500, 4200]
    assert result["rdma_users_known"] is True
    shutil.rmtree(busy.root / "proc/9")
    result = both(busy, request(busy))
    assert (result["commands"], result["deferred"]) == ([MTU0, WRITE, FILE0, RELOAD, REMOVE], [])


def test_a_saved_value_waits_for_its_reload_too(busy: FakeNode) -> None:
    for rail in busy.rails:
        busy.put(f"/sys/class/net/{rail.netdev}/mtu", "4200\n")
    result = both(busy, request(busy))
    assert result["commands"] == [WRITE, FILE1, RELOAD, REMOVE]
    assert result["deferred"][0]["steps"] == [FILE0]


def test_a_reload_that_an_earlier_run_left_is_for_every_port(busy: FakeNode) -> None:
    busy.put(PENDING_FILE, "")
    result = both(busy, request(busy))
    assert result["commands"] == []
    assert [entry["steps"] for entry in result["deferred"]] == [[MTU0, FILE0], [MTU1, FILE1]]


def test_two_ports_of_one_file_wait_together(busy: FakeNode) -> None:
    for rail in busy.rails:
        rail.network_file = busy.rails[0].network_file
    result = both(busy, request(busy))
    assert result["commands"] == []
    assert [entry["holders"] for entry in result["deferred"]] == [["pid 9 train holds mlx5_0"]] * 2


@pytest.mark.parametrize("policy", ["if_idle", "force", "never"])
def test_policies(busy: FakeNode, policy: t.Any) -> None:
    result = configure(busy.machine(), request(busy, disruption_policy=policy), True)
    assert len(result["deferred"]) == {"if_idle": 1, "force": 0, "never": 2}[policy]
    assert result["rdma_users_known"] is (None if policy == "never" else True)


def test_what_disturbs_nobody_is_set_on_a_port_in_use(busy: FakeNode) -> None:
    settings: dict[str, t.Any] = {"rx_ring_entries": 8192, "pause_rx": False}
    pause = "off"
    rings = {"rail0": 1024, "rail1": 8192}

    def ethtool(call: tuple[str, ...]) -> t.Any:
        nonlocal pause
        if "-A" in call:
            pause = "done"
            return ok()
        if "-g" in call:
            return ok(json.dumps([{"ifname": call[3], "rx-max": 8192, "rx": rings[call[3]]}]))
        on = pause == "off"
        return ok(json.dumps([{"ifname": call[3], "rx": on, "tx": True}]))

    busy.override[("ethtool",)] = ethtool
    asked = request(busy, persistent=False, runtime=True)
    asked = dataclasses.replace(asked, ports=(Want("0000:03:00.0", 4200, None, settings),))
    result = both(busy, asked)
    assert result["commands"] == [["ethtool", "-A", "rail0", "rx", "off"]]
    assert result["deferred"][0]["steps"] == [MTU0, ["ethtool", "-G", "rail0", "rx", "8192"]]
    assert result["after"][0]["rx_ring_entries"] == 1024


def test_a_step_of_slurm_holds_every_port(node: FakeNode) -> None:
    verbs(node.root, ["mlx5_0", "rocep3s0f0"])
    slurm_step(node.root, 1234, "all_reduce_perf", UVERBS0)
    result = both(node, request(node))
    step = "Slurm job 4242 step 0 (pid 1234 all_reduce_perf)"
    assert (result["commands"], [entry["holders"] for entry in result["deferred"]]) == (
        [], [[f"{step} holds mlx5_0"], [f"{step} runs on this node"]])


def test_members_of_a_bond_wait_together(busy: FakeNode) -> None:
    for rail in busy.rails:
        busy.link_fields[rail.netdev] = {"master": "bond0", "linkinfo": {"info_slave_kind": "bond"}}
    extra = busy.links

    def links(call: tuple[str, ...]) -> t.Any:
        return ok(json.dumps([*extra(), {"ifname": "bond0", "ifindex": 9, "mtu": 1500, "max_mtu": 9978}]))

    busy.override[("ip", "-d", "-j", "addr", "show")] = links
    result = configure(busy.machine(), request(busy, persistent=False, verify_rdma_mtu=False), True)
    assert (result["commands"], len(result["deferred"])) == ([], 2)
    assert result["deferred"][1]["holders"] == ["pid 9 train holds mlx5_0"]


def test_a_reload_alone_waits(busy: FakeNode) -> None:
    shutil.rmtree(busy.root / "proc/9")
    configure(busy.machine(), request(busy), False)
    busy.put(PENDING_FILE, "")
    process(busy.root, 9, "train", UVERBS0)
    result = both(busy, request(busy))
    assert [entry["steps"] for entry in result["deferred"]] == [[RELOAD, REMOVE]]


def test_nobody_is_asked_where_nothing_is_disturbed(busy: FakeNode) -> None:
    for rail in busy.rails:
        busy.put(f"/sys/class/net/{rail.netdev}/mtu", "4200\n")
    result = configure(busy.machine(), request(busy, persistent=False), False)
    assert (result["rdma_users_known"], result["deferred"]) == (None, [])
    assert not [call for call in busy.calls if call[0] == "rdma"]
