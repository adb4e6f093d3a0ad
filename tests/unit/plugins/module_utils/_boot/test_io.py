# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rounds over a node: the modules' own code on fakes, and calls that fail."""
from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot.model import Deed, Reason
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError, Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import Intent

from tests.unit.plugins.fake import FakeNode
from tests.unit.plugins.module_utils._roce.fake import Qos
from tests.unit.plugins.rail_node import RailNode, rail_node

ONE, TWO = "0000:03:00.0", "0002:03:00.0"
PORTS = [{"pci": ONE}, {"pci": TWO}]
QOS = Intent({"roce_qos": {"ports": PORTS}})
BOOT, HAND = Reason("boot"), Reason("hand")
Answer = t.Callable[[list[str]], "dict[str, t.Any]"]


@pytest.fixture
def qos(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> Qos:
    return Qos(node, monkeypatch)


def apply(node: FakeNode, intent: Intent, reason: Reason = HAND) -> t.Any:
    told: list[Deed] = []
    found = io.apply(node.machine(), intent, reason, told.append)
    assert tuple(told) == found.done
    return found


def writes(qos: Qos) -> list[tuple[str, ...]]:
    return [call for call in qos.calls("dcb") if {"set", "add", "flush"} & set(call)]


def test_what_was_lost_is_set_again_and_then_nothing_is_written(qos: Qos) -> None:
    told = io.one_round(qos.node.machine(), QOS, HAND, True)
    assert told.done == () and {drift.section for drift in told.drift} == {"roce_qos"} and writes(qos) == []
    done = apply(qos.node, QOS)
    assert [deed.command for deed in done.done] == [drift.command for drift in told.drift] and done.drift == ()
    assert qos.ports["rail0"]["pfc"][3] is True and qos.ports["rail1"]["pfc"][3] is True
    before = writes(qos)
    again = apply(qos.node, QOS)
    assert (again.done, again.drift) == ((), ()) and writes(qos) == before
    assert io.one_round(qos.node.machine(), QOS, HAND, True).drift == ()


def test_one_group_that_was_lost_is_set_alone(qos: Qos) -> None:
    apply(qos.node, QOS)
    qos.ports["rail1"]["pfc"] = [False] * 8
    assert [deed.command for deed in apply(qos.node, QOS).done] == [
        ("dcb", "pfc", "set", "dev", "rail1", "prio-pfc", "all:off", "3:on")]


def test_a_port_that_is_not_there_does_not_hinder_the_other(qos: Qos) -> None:
    for path in (qos.node.root / f"sys/bus/pci/devices/{TWO}").rglob("*"):
        if path.is_file():
            path.unlink()
    (qos.node.root / f"sys/bus/pci/devices/{TWO}").rename(qos.node.root / "gone")
    found = apply(qos.node, QOS)
    assert qos.ports["rail0"]["pfc"][3] is True and qos.ports["rail1"]["pfc"][3] is False
    assert [drift.text() for drift in found.drift] == [f"ports: {TWO}: the device is not there"]
    assert qos.node.now >= HAND.settle_seconds
    assert apply(qos.node, QOS, Reason("udev", "rail0", ONE)).drift == ()


def test_a_port_that_cannot_be_set_does_not_hinder_the_other(qos: Qos) -> None:
    qos.node.put("/sys/class/infiniband/rocep3s0f0/ports/1/link_layer", "InfiniBand\n")
    found = apply(qos.node, QOS)
    assert qos.ports["rail0"]["pfc"][3] is True and writes(qos) != []
    assert [drift.section for drift in found.drift] == ["roce_qos"] and "link layer InfiniBand" in found.drift[0].what


def test_what_no_port_alone_can_do_is_told_once(qos: Qos) -> None:
    Path(qos.node.root / "usr/sbin/dcb").unlink()
    found = io.one_round(qos.node.machine(), QOS, HAND, False)
    assert len(found.drift) == 1 and "install the package" in found.drift[0].what


def test_a_device_whose_driver_is_not_ready_is_waited_for(qos: Qos) -> None:
    base = qos.node.root / f"sys/bus/pci/devices/{ONE}"
    (base / "infiniband").rename(base / "later")

    def sleep(seconds: float) -> None:
        qos.node.now += seconds
        if qos.node.now > 2 and (base / "later").exists():
            (base / "later").rename(base / "infiniband")

    told: list[Deed] = []
    machine = dataclasses.replace(qos.node.machine(), sleep=sleep)
    found = io.apply(machine, QOS, Reason("udev", "rail0", ONE), told.append)
    assert found.drift == () and qos.ports["rail0"]["pfc"][3] is True and 2 < qos.node.now < 10


def test_what_is_there(node: FakeNode) -> None:
    (node.root / f"sys/bus/pci/devices/{TWO}/infiniband/rocep3s0f0").rmdir()
    found = io.present(node.machine(), (ONE, TWO, "0000:99:00.0"))
    assert found.ready == {ONE}
    assert found.lacking == {TWO: "it has no RDMA device", "0000:99:00.0": "the device is not there"}
    (node.root / "sys/class/net/rail1/master").symlink_to("../bond0")
    assert TWO in io.present(node.machine(), (TWO,)).ready
    (node.root / f"sys/bus/pci/devices/{TWO}/net/rail1").rmdir()
    assert "no netdev" in io.present(node.machine(), (TWO,)).lacking[TWO]
    (node.root / "sys/class/net/rail0/device").symlink_to(f"../../../{ONE}")
    assert (io.device_of(node.machine(), "rail0"), io.device_of(node.machine(), "x")) == (ONE, None)


def test_all_sections_together(qos: Qos) -> None:
    qos.node.put("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "IB/RoCE v1\n")
    intent = Intent({"mlx5_port": {"ports": [{"pci": ONE, "mtu_bytes": 4200}]},
                     "roce_gid": {"ports": [{"pci": ONE}], "roce_mode": "v2", "subnets": ["198.51.100.0/24"]}})
    found = apply(qos.node, intent)
    assert [deed.command[:2] for deed in found.done] == [
        ("ip", "link"), ("write", "/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode")]
    assert found.drift == () and qos.node.mtu(qos.node.rails[0]) == 4200
    # Nothing is saved: neither networkd's files nor the intent are the boot tool's.
    assert not any("aidc" in path for path in qos.node.files())
    assert apply(qos.node, intent).done == ()


def test_a_gid_that_is_missing_is_told(qos: Qos) -> None:
    intent = Intent({"roce_gid": {"ports": [{"pci": ONE}], "subnets": ["192.0.2.0/24"]}})
    assert [drift.text() for drift in apply(qos.node, intent).drift] == [
        f"roce_gid: {ONE} (rail0): no GID that fits"]


@pytest.mark.parametrize("owner", ["networkd", "netplan", "networkmanager"])
def test_rails_have_their_sysctls_set_and_their_owner_is_named_for_the_rest(tmp_path: Path, owner: str) -> None:
    node: RailNode = rail_node(tmp_path, owner)
    rails = [{"rail": 0, "pci": ONE, "address": "198.51.100.1/24"},
             {"rail": 1, "pci": TWO, "address": "203.0.113.1/24"}]
    intent = Intent({"rail_network": {"rails": rails}})
    before = node.files()
    told = io.one_round(node.machine(), intent, HAND, True)
    found = apply(node, intent)
    assert [deed.command[0] for deed in found.done] == ["set"] * 6
    assert node.get("/proc/sys/net/ipv4/conf/rail1/arp_announce") == "2"
    whats = [drift.what for drift in found.drift]
    assert any("198.51.100.1/24 is missing" in what and f"what {owner} was told" in what for what in whats)
    assert any("MTU is 1500" in what for what in whats) and any("saved address" in what for what in whats)
    assert not any(" of 0000:03:00.0 (rail0): got 0" in what for what in whats)
    assert [drift.what for drift in told.drift if not drift.command] == whats
    # Never a reload or a reconfigure, never a file.
    assert not any({"reload", "reconfigure", "up", "reapply", "generate"} & set(call) for call in node.calls)
    assert node.files() == before
    assert apply(node, intent).done == ()


def failing(*answers: Answer) -> t.Callable[[Machine, t.Any, bool], dict[str, t.Any]]:
    waiting = list(answers)

    def run(machine: Machine, options: t.Any, check_mode: bool) -> dict[str, t.Any]:
        assert machine.locked
        return (waiting.pop(0) if len(waiting) > 1 else waiting[0])([entry["pci"] for entry in options["ports"]])

    return run


def good(ports: list[str]) -> dict[str, t.Any]:
    return {"steps": []}


def test_a_call_that_failed_halfway_is_not_made_again_for_each_port(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def halfway(ports: list[str]) -> dict[str, t.Any]:
        assert ports == [ONE, TWO]
        raise AidcError([Problem("carrier of rail0", "none", "the link up again")], [["dcb", "pfc"]])

    monkeypatch.setitem(io.RUN, "roce_qos", failing(halfway, good))
    found = apply(node, QOS)
    assert [deed.command for deed in found.done] == [("dcb", "pfc")] and found.drift == (), "the next round was good"


def test_a_device_that_goes_away_meanwhile_is_no_crash(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(ports: list[str]) -> dict[str, t.Any]:
        raise OSError(19, "No such device", "/sys/class/net/rail0/carrier")

    monkeypatch.setitem(io.RUN, "roce_qos", failing(gone))
    assert "No such device" in apply(node, QOS).drift[0].what


def test_an_option_of_another_release_is_told(node: FakeNode) -> None:
    found = apply(node, Intent({"roce_qos": {"ports": [{"pci": ONE}], "of_tomorrow": 1}}))
    assert "roce_qos.of_tomorrow" in found.drift[0].what and found.done == ()


def test_options_that_do_not_fit_each_other_are_told(qos: Qos) -> None:
    found = apply(qos.node, Intent({"roce_qos": {"ports": [{"pci": ONE}], "priority": 6}}))
    assert "another priority" in found.drift[0].what and writes(qos) == []
