# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import intent

from tests.unit.plugins.module_utils._roce.conftest import params, request_of
from tests.unit.plugins.module_utils._roce.fake import PCI

ETS = {"prio_tc": list(range(8)), "tc_tsa": ["ets"] * 6 + ["strict", "ets"], "tc_bw": [10, 8, 8, 50, 8, 8, 0, 8]}


def problem(**options: t.Any) -> str:
    _request, problems = intent.request(params(**options))
    assert len(problems) == 1, [one.text() for one in problems]
    return problems[0].text()


def test_one_dscp_and_one_priority_give_all_groups() -> None:
    state = request_of().wants[0].state
    assert list(state) == ["dcbx", "trust", "dscp_map", "ets", "pfc", "ecn", "cnp", "cm_tos", "traffic_class"]
    assert (state["pfc"], state["cm_tos"], state["traffic_class"]) == ([3], 104, 104)
    assert state["cnp"] == {"dscp": 48, "priority": 6}
    assert state["dscp_map"] == [dscp >> 3 for dscp in range(64)]
    assert state["ets"] == ETS


def test_another_class_moves_map_pfc_tos_and_ets_together() -> None:
    state = request_of(dscp=34, priority=1, cnp={"dscp": 10, "priority": 5}, bandwidth_percent=40).wants[0].state
    assert (state["dscp_map"][34], state["dscp_map"][10], state["dscp_map"][35]) == (1, 5, 4)
    assert (state["pfc"], state["cm_tos"], state["ecn"]) == ([1], 136, {"priority": 1, "np": True, "rp": True})
    assert state["ets"]["tc_bw"] == [10, 40, 10, 10, 10, 0, 10, 10] and state["ets"]["tc_tsa"][5] == "strict"


@pytest.mark.parametrize("priority", range(8))
@pytest.mark.parametrize("percent", [1, 50, 99])
def test_derived_shares_are_always_100(priority: int, percent: int) -> None:
    ets = intent.default_ets(priority, (priority + 1) % 8, percent)
    assert sum(ets["tc_bw"]) == 100 and ets["tc_bw"][priority] >= percent


def test_a_port_overrides_what_it_names() -> None:
    request = request_of(dscp=24, cnp={"dscp": 50}, ports=[
        {"pci": " 0000:0A:00.0"}, {"pci": PCI, "lossless": False, "cnp": {"priority": 7}}])
    first, second = request.wants
    assert (first.pci, first.state["pfc"], first.state["cnp"]) == ("0000:0a:00.0", [3], {"dscp": 50, "priority": 6})
    assert (second.state["pfc"], second.state["cnp"], second.lossless) == ([], {"dscp": 50, "priority": 7}, False)
    assert second.state["cm_tos"] == 96


def test_pcp_has_no_map_and_a_firmware_owner_leaves_what_it_negotiates() -> None:
    assert "dscp_map" not in request_of(trust="pcp").wants[0].state
    want = request_of(dcbx_owner="firmware").wants[0]
    assert list(want.state) == ["dcbx", "ecn", "cnp", "cm_tos", "traffic_class"] and not want.lossless


def test_unmanaged_groups_are_not_there() -> None:
    assert list(request_of(unmanaged_groups=["ets", "pfc", "dcbx"]).wants[0].state) == [
        "trust", "dscp_map", "ecn", "cnp", "cm_tos", "traffic_class"]


def test_buffers_and_cable_only_if_given() -> None:
    buffer = {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "buffer_size_bytes": [100000, 300000, 0, 0, 0, 0, 0, 0]}
    state = request_of(buffer=buffer, cable_length_metres=20).wants[0].state
    assert state["buffer"] == {"prio_buffer": buffer["prio_buffer"], "buffer_size": buffer["buffer_size_bytes"]}
    assert state["cable_length"] == 20 and list(state).index("buffer") < list(state).index("pfc")


@pytest.mark.parametrize(("options", "text"), [
    ({"dscp": 64}, f"dscp of {PCI}: got 64, wanted 0 to 63"),
    ({"dscp": -1}, "got -1, wanted 0 to 63"),
    ({"priority": 8}, f"priority of {PCI}: got 8, wanted 0 to 7"),
    ({"cnp": {"dscp": 64}}, "cnp.dscp of"),
    ({"cnp": {"priority": 3}}, "cnp.priority of 0000:03:00.0: got 3, the priority of RoCE data, wanted another"),
    ({"dscp": 48}, "cnp.dscp of 0000:03:00.0: got 48, the DSCP of RoCE data, wanted another DSCP"),
    ({"ets": {**ETS, "tc_bw": [10, 8, 8, 55, 8, 8, 0, 8]}}, "together 105, wanted 100 over the classes with ets"),
    ({"ets": {**ETS, "tc_bw": [10, 8, 8, 50, 8, 8, 5, 8]}}, "wanted 0 for a class that is not ets"),
    ({"ets": {**ETS, "tc_bw": [50, 50]}}, "ets.tc_bw of 0000:03:00.0: got 50,50, wanted eight of 0 to 100"),
    ({"ets": {**ETS, "prio_tc": [0, 1, 2, 8, 4, 5, 6, 7]}}, "ets.prio_tc"),
    ({"ets": {**ETS, "prio_tc": [0, 1, 2, 6, 4, 5, 6, 7]}}, "got traffic class 6 for RoCE data and for CNP"),
    ({"ets": {**ETS, "tc_tsa": ["fair"] * 8}}, "wanted eight of strict, ets, vendor"),
    ({"bandwidth_percent": 100}, "bandwidth_percent of 0000:03:00.0: got 100, wanted 1 to 99"),
    ({"cable_length_metres": 1000}, "got 1000, wanted 1 to 999"),
    ({"buffer": {"prio_buffer": [0] * 8, "buffer_size_bytes": [0] * 8}}, "as it is the one of lossless priority 3"),
    ({"buffer": {"prio_buffer": [0] * 7, "buffer_size_bytes": [1] * 8}}, "buffer.prio_buffer"),
    ({"require_groups": ["ets"], "unmanaged_groups": ["ets"]}, "it stands in unmanaged_groups"),
    ({"require_groups": ["buffer"]}, "give the option that sets it"),
])
def test_bad_input_is_named_with_what_was_got_and_wanted(options: dict[str, t.Any], text: str) -> None:
    assert text in problem(**options)
