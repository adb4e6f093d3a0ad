# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot.model import Call, Deed, Drift, Present, Reason
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError, Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import Intent

ONE, TWO = "0000:03:00.0", "0002:03:00.0"
PORTS = [{"pci": ONE.upper()}, {"pci": TWO}]
INTENT = Intent({
    "roce_gid": {"ports": PORTS, "missing": "fail", "persistent": True},
    "rail_network": {"rails": [{"pci": TWO, "rail": 1}], "disruption_policy": "force", "persistent": True},
    "mlx5_port": {"ports": PORTS, "runtime": False, "persistent": True},
    "roce_qos": {"ports": [{"pci": ONE}], "dscp": 24},
})


def test_wanted_ports_each_once() -> None:
    assert sorted(plan.wanted_ports(INTENT)) == [ONE, TWO]


def test_calls_in_the_order_of_the_playbook_with_what_only_runs() -> None:
    found = {call.section: call.options for call in plan.calls(INTENT, {ONE, TWO})}
    assert list(found) == ["rail_network", "mlx5_port", "roce_qos", "roce_gid"]
    assert all(options["persistent"] is False for options in found.values())
    # A boot tool stops nobody's link, whatever the operator's last run was allowed.
    assert found["rail_network"]["disruption_policy"] == "if_idle"
    assert found["mlx5_port"]["runtime"] is True and "disruption_policy" not in found["mlx5_port"]
    assert found["roce_gid"]["missing"] == "report" and found["roce_qos"]["dscp"] == 24


@pytest.mark.parametrize(("ready", "sections"), [
    (set(), []), ({ONE}, ["mlx5_port", "roce_qos", "roce_gid"]), ({TWO}, ["rail_network", "mlx5_port", "roce_gid"]),
])
def test_ports_that_are_not_there_are_left_out(ready: set[str], sections: list[str]) -> None:
    found = plan.calls(INTENT, ready)
    assert [call.section for call in found] == sections
    assert all([entry["pci"].lower() for entry in call.options.get("ports") or call.options["rails"]] == list(ready)
               for call in found)


def test_what_lacks_is_told_but_not_to_the_event_of_another_port() -> None:
    there = Present(frozenset({ONE}), {TWO: "the device is not there"})
    drift = [Drift("ports", f"{TWO}: the device is not there", TWO)]
    assert plan.lacking(INTENT, there, Reason("boot")) == drift
    assert plan.lacking(INTENT, there, Reason("hand")) == drift
    assert plan.lacking(INTENT, there, Reason("udev", "rail0", ONE)) == []
    assert plan.lacking(INTENT, there, Reason("udev", "rail1", TWO)) == drift


def test_single_calls() -> None:
    call = Call("roce_qos", {"ports": [{"pci": ONE}, {"pci": TWO}], "dscp": 26})
    assert plan.single(call) == [Call("roce_qos", {"ports": [{"pci": pci}], "dscp": 26}) for pci in (ONE, TWO)]
    assert plan.single(plan.single(call)[0]) == []


STEPS = [{"command": ["dcb", "x"], "why": "pfc is []", "pci": ONE}, {"command": ["set", "y", "1"], "why": "it is 0",
                                                                      "netdevs": ["rail0"]}]


def test_steps_are_deeds_or_what_differs() -> None:
    result: dict[str, t.Any] = {"steps": STEPS}
    done = plan.outcome("roce_qos", result, False)
    assert done.done == (Deed("roce_qos", ("dcb", "x"), "pfc is []"), Deed("roce_qos", ("set", "y", "1"), "it is 0"))
    assert done.drift == () and done.done[0].text() == "roce_qos: dcb x (pfc is [])"
    told = plan.outcome("roce_qos", result, True)
    assert told.done == () and told.drift[0].as_dict() == {
        "section": "roce_qos", "port": ONE, "what": "pfc is []", "command": ["dcb", "x"]}
    assert told.drift[1].port == "rail0"


def test_what_a_call_leaves_as_it_is() -> None:
    lost = {"steps": [], "drift": [Problem("rail0", "no address", "what networkd was told")],
            "deferred": [{"pci": TWO, "netdev": "rail1", "holders": ["python3 (pid 7)"]}]}
    left = plan.outcome("rail_network", lost, False).drift
    assert left[1].port == TWO and [drift.what for drift in left] == [
        "rail0: got no address, wanted what networkd was told", "rail1: in use, so it was left alone: python3 (pid 7)"]
    ports = [{"pci": ONE, "netdev": "rail0", "gid": None}, {"pci": TWO, "netdev": "rail1", "gid": "fe80::1"}]
    gids = {"steps": [], "ports": ports}
    assert [drift.text() for drift in plan.outcome("roce_gid", gids, False).drift] == [
        f"roce_gid: {ONE} (rail0): no GID that fits"]


def test_failures() -> None:
    problem = Problem("a", "b", "c")
    found = plan.failure("roce_qos", AidcError([problem], [["dcb", "x"]]))
    assert [deed.command for deed in found.done] == [("dcb", "x")]
    assert [drift.what for drift in found.drift] == ["a: got b, wanted c"]


@pytest.mark.parametrize(("reason", "text"), [
    (Reason("boot"), "boot"), (Reason("udev", "rail0", ONE), "udev:rail0"), (Reason("hand"), "hand")])
def test_reasons(reason: Reason, text: str) -> None:
    assert str(reason) == text and reason.settle_seconds > 0
