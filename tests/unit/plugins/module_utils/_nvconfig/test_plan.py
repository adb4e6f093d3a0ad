# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden plans: wanted parameters against what the firmware shows."""
from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.model import (
    MEMORY_FILE,
    Node,
    Reading,
    Request,
    Row,
    Value,
    make_want,
)

A, B = "0000:03:00.0", "0002:03:00.0"


def row(name: str, default: str | None, current: str | None, following: str, read_only: bool = False) -> Row:
    return Row(name, Value(following), Value(default) if default else None, Value(current) if current else None,
               read_only)


ROWS = {entry.name: entry for entry in (
    row("LINK_TYPE_P1", "IB(1)", "IB(1)", "IB(1)"), row("SRIOV_EN", "False(0)", "True(1)", "True(1)"),
    row("CNP_DSCP_P1", "48", "48", "48"), row("ADVANCED_PCI_SETTINGS", "False(0)", "False(0)", "False(0)"),
    row("LLDP_NB_RX_MODE_P1", "OFF(0)", "ALL(2)", "ALL(2)"),
    row("AN_ARRAY", "Array[0..7]", "Array[0..7]", "Array[0..7]"),
    row("AN_ARRAY[1]", "0", "0", "5"), row("FEC", "AUTO(0)", "AUTO(0)", "AUTO(0)", read_only=True),
    row("WRITTEN", "0", "0", "7"), row("OLD", None, None, "1"),
)}


def node(memory: t.Mapping[str, t.Any] | None = None, boot_id: str = "now", **changes: t.Any) -> Node:
    rows = {**ROWS, **{name: dataclasses.replace(ROWS[name], next=Value(text)) for name, text in changes.items()}}
    readings = {pci: Reading(pci, "ConnectX7", None, rows, reset_levels=frozenset({3})) for pci in (A, B)}
    return Node("mstconfig", readings, boot_id, memory or {})


def request(parameters: dict[str, t.Any], other: dict[str, t.Any] | None = None, **options: t.Any) -> Request:
    wants = [make_want(A, parameters)] + ([make_want(B, other)] if other is not None else [])
    return Request(tuple(wants), **options)


GOLDEN: list[tuple[str, dict[str, t.Any], dict[str, t.Any] | None, list[list[str]]]] = [
    ("nothing wanted", {}, {}, []),
    ("all there", {"SRIOV_EN": True, "CNP_DSCP_P1": 48, "LINK_TYPE_P1": "IB(1)"}, None, []),
    ("next boot is what counts, not current", {"WRITTEN": 7, "AN_ARRAY[1]": 5}, None, []),
    ("written by somebody, wanted as it runs", {"WRITTEN": 0}, None, [[A, "set", "WRITTEN=0"]]),
    ("all that differs in one set, in the order given", {"LINK_TYPE_P1": "ETH", "SRIOV_EN": True, "CNP_DSCP_P1": 40,
                                                        "ADVANCED_PCI_SETTINGS": "true"}, None,
     [[A, "set", "LINK_TYPE_P1=ETH", "CNP_DSCP_P1=40", "ADVANCED_PCI_SETTINGS=true"]]),
    ("one set for each device that differs", {"CNP_DSCP_P1": 40}, {"CNP_DSCP_P1": 48}, [[A, "set", "CNP_DSCP_P1=40"]]),
    ("both devices", {"SRIOV_EN": 0}, {"SRIOV_EN": False}, [[A, "set", "SRIOV_EN=0"], [B, "set", "SRIOV_EN=False"]]),
    ("an array's elements", {"AN_ARRAY[1]": 6}, None, [[A, "set", "AN_ARRAY[1]=6"]]),
    ("name and number", {"LINK_TYPE_P1": "ETH(2)"}, None, [[A, "set", "LINK_TYPE_P1=2"]]),
    ("firmware without current values", {"OLD": 2}, None, [[A, "set", "OLD=2"]]),
    ("a name in quotes that YAML would take", {"LLDP_NB_RX_MODE_P1": "OFF"}, None,
     [[A, "set", "LLDP_NB_RX_MODE_P1=OFF"]]),
]


@pytest.mark.parametrize(("first", "second", "commands"), [entry[1:] for entry in GOLDEN], ids=[e[0] for e in GOLDEN])
def test_golden_plans(first: dict[str, t.Any], second: dict[str, t.Any] | None, commands: list[list[str]]) -> None:
    wanted = request(first, second)
    assert plan.check_request(wanted) == [] and plan.check(wanted, node()) == []
    steps = plan.plan(wanted, node())
    argv = [["mstconfig", "-y", "-d", *command] for command in commands]
    assert [list(step.command) for step in steps] == argv + ([["write", MEMORY_FILE]] if argv else [])
    assert all(step.as_dict()["disruptive"] == "none" and step.why for step in steps)


def after(wanted: Request, before: Node) -> Node:
    """The node as the plan leaves it."""
    readings = {}
    for want in wanted.devices:
        rows = dict(before.readings[want.pci].rows)
        for name, value in want.parameters.items():
            if name in rows and not value.fits(rows[name].next):
                text = value.argument()
                if not text.isdigit() and value.number is not None:
                    text += f"({value.number})"
                rows[name] = dataclasses.replace(rows[name], next=Value(text))
        readings[want.pci] = dataclasses.replace(before.readings[want.pci], rows=rows)
    text = next((step.text for step in plan.plan(wanted, before) if step.text), "{}")
    return dataclasses.replace(before, readings=readings, memory=json.loads(text))


@pytest.mark.parametrize("parameters", [entry[1] for entry in GOLDEN], ids=[entry[0] for entry in GOLDEN])
def test_what_is_predicted_is_what_the_plan_leaves(parameters: dict[str, t.Any]) -> None:
    wanted, before = request(parameters), node()
    written = plan.written(wanted, before)
    late = after(wanted, before)
    assert plan.plan(wanted, late) == [] and plan.verify(wanted, late) == []
    assert plan.state(wanted, before, after=True) == plan.state(wanted, late)
    predicted = plan.details(wanted, before, written, predict=True)
    real = plan.details(wanted, late, written, predict=False)
    for one, other in zip(predicted, real):
        assert [entry["state"] for entry in one["parameters"]] == [entry["state"] for entry in other["parameters"]]
        for key in ("pending", "reset_required", "order", "reason"):
            assert one[key] == other[key]
    assert plan.summary(predicted) == plan.summary(real)


def test_a_value_that_does_not_take() -> None:
    wanted = request({"CNP_DSCP_P1": 40, "SRIOV_EN": True})
    problems = plan.verify(wanted, node())
    assert [(problem.object, problem.got, problem.wanted) for problem in problems] == [
        (f"next-boot value of {A} CNP_DSCP_P1", "48", "40")]
    assert "not tried again" in problems[0].hint


def states(wanted: Request, have: Node) -> dict[str, str]:
    device = plan.details(wanted, have, set(), predict=False)[0]
    return {entry["name"]: entry["state"] for entry in device["parameters"]}


def test_states() -> None:
    wanted = request({"SRIOV_EN": True, "WRITTEN": 7, "CNP_DSCP_P1": 1, "NOT_THERE": 1, "OLD": 1,
                      "ADVANCED_PCI_SETTINGS": True, "PCI_WR_ORDERING": 1}, unknown_parameters="skip")
    assert states(wanted, node()) == {
        "SRIOV_EN": "set", "WRITTEN": "pending", "CNP_DSCP_P1": "differs", "NOT_THERE": "unknown", "OLD": "set",
        "ADVANCED_PCI_SETTINGS": "differs", "PCI_WR_ORDERING": "waiting"}
    assert plan.check(wanted, node()) == []
    lines = plan.summary(plan.details(wanted, node(), set(), predict=False))
    assert lines[0].startswith(f"{A}: pending: WRITTEN runs with 0, wanted 7;")
    assert lines[1:] == [f"{A}: PCI_WR_ORDERING: can be set once the pending values are loaded; then run again",
                         f"{A}: NOT_THERE: not known to this firmware, skipped"]


@pytest.mark.parametrize(("parameters", "text"), [
    ({"NOT_THERE": 1}, "take it out, or use unknown_parameters: skip"),
    ({"LINK_TYPE_P2": "ETH"}, "Ethernet-only cards have no link type"),
    ({"MAX_ACC_OUT_READ": 44}, "want ADVANCED_PCI_SETTINGS: true too"),
    ({"MAX_ACC_OUT_READ": 44, "ADVANCED_PCI_SETTINGS": False}, "hidden while ADVANCED_PCI_SETTINGS is off"),
    ({"CNP_DSCP_P1": "many"}, "got 'many', wanted a number like 48"),
    ({"CNP_DSCP_P1": True}, "got the boolean True, wanted a value like 48"),
    ({"LLDP_NB_RX_MODE_P1": False}, 'quote the name, such as "OFF"'),
    ({"SRIOV_EN": 2}, "got '2', wanted true or false"), ({"SRIOV_EN": "maybe"}, "wanted true or false"),
    ({"AN_ARRAY": 1}, "write AN_ARRAY[0..7] for all, or AN_ARRAY[0]"),
    ({"FEC": "RS"}, "wanted AUTO(0); the parameter is read-only"),
])
def test_bad_values(parameters: dict[str, t.Any], text: str) -> None:
    problems = plan.check(request(parameters), node())
    assert len(problems) == 1 and text in problems[0].text()


def test_read_only_as_it_is_and_gates_are_fine() -> None:
    assert plan.check(request({"FEC": "AUTO"}), node()) == []
    assert plan.check(request({"MAX_ACC_OUT_READ": 44, "ADVANCED_PCI_SETTINGS": 1}), node()) == []


@pytest.mark.parametrize(("wants", "text"), [
    ([("03:00.0", {})], "wanted a PCI address such as"), ([(A, {}), (A, {})], "listed twice"),
    ([(A, {"A[": 1})], "a parameter's name"),
    ([(A, {"CNP_DSCP_P1": 1}), ("0000:03:00.1", {"CNP_DSCP_P1": 2})], "wanted 1, as for 0000:03:00.0 of the same card"),
])
def test_bad_requests(wants: list[tuple[str, dict[str, t.Any]]], text: str) -> None:
    problems = plan.check_request(Request(tuple(make_want(*want) for want in wants)))
    assert len(problems) == 1 and text in problems[0].text()


def test_functions_of_one_card_may_agree_and_cards_may_differ() -> None:
    wants = [(A, {"CNP_DSCP_P1": 1, "X": 1}), ("0000:03:00.1", {"CNP_DSCP_P1": 1, "X": 2}), (B, {"CNP_DSCP_P1": 2})]
    assert plan.check_request(Request(tuple(make_want(*want) for want in wants))) == []


def test_the_memory_tells_a_reboot_that_loaded_nothing() -> None:
    wanted = request({"WRITTEN": 7}, bmc_powered=None)
    for boot_id, known, past in (("now", "then", True), ("now", "now", False), ("", "then", False)):
        memory = {A: {"WRITTEN": {"wanted": "7", "boot_id": known}}}
        device = plan.details(wanted, node(memory, boot_id), set(), predict=False)[0]
        assert device["reason"].startswith("A reboot since they were written") is past
    other = {A: {"WRITTEN": {"wanted": "8", "boot_id": "then"}}}
    assert "since" not in plan.details(wanted, node(other), set(), predict=False)[0]["reason"]


def test_what_the_memory_keeps() -> None:
    memory = {A: {"WRITTEN": {"wanted": "7", "boot_id": "then"}, "SRIOV_EN": {"wanted": "True", "boot_id": "then"}},
              "gone": {"X": {"wanted": "1", "boot_id": "then"}}}
    wanted = request({"WRITTEN": 7, "SRIOV_EN": True, "CNP_DSCP_P1": 40})
    assert json.loads(plan.plan(wanted, node(memory))[-1].text) == {
        A: {"WRITTEN": {"wanted": "7", "boot_id": "then"}, "CNP_DSCP_P1": {"wanted": "40", "boot_id": "now"}},
        "gone": {"X": {"wanted": "1", "boot_id": "then"}}}
    # Written again in the same boot, and a host that tells no boot: nothing to remember.
    again = {A: {"CNP_DSCP_P1": {"wanted": "40", "boot_id": "now"}}}
    for have in (node(again), node(boot_id="")):
        assert [step.command[0] for step in plan.plan(request({"CNP_DSCP_P1": 40}), have)] == ["mstconfig"]


def test_firmware_without_current_values() -> None:
    wanted = request({"OLD": 2})
    assert plan.pending(wanted.devices[0], node()) == []
    done = plan.written(wanted, node())
    device = plan.details(wanted, after(wanted, node()), done, predict=False)[0]
    assert (device["pending"], device["parameters"][0]["current"]) == (["OLD"], None)
    assert "a value that the firmware does not show" in plan.summary([device])[0]
