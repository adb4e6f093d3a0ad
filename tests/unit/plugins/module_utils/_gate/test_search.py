# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs become launches, and answers become outcomes."""
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.model import Kind, Outcome, Run, Stage
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.search import launches, outcome, rules_of
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError

from .launched import HCAS, LIMIT, SETTING


def run_of(kind: Kind = "pair", stage: Stage = "pair", rails: bool = False, nodes: tuple[str, ...] = ("gb3", "gb1"),
           ) -> Run:
    return Run("000007", stage, kind, nodes, 2, 1, rails, "why")


# -- launches ---------------------------------------------------------------------------------------------


def test_a_pair_is_one_launch_held_to_the_networks_limit() -> None:
    (launch,) = launches(SETTING, run_of())
    assert launch["id"] == "000007-all" and launch["hosts"] == ["gb3", "gb1"] and launch["needs"] == ""
    assert (launch["min_busbw_gbps"], launch["min_bytes"], launch["max_bytes"]) == (LIMIT, "1G", "4G")
    assert launch["environment"] == SETTING.environment and launch["program"] == "all_reduce_perf"


def test_each_rail_alone_has_its_nic_its_share_of_bytes_and_of_the_limit() -> None:
    whole, *rails = launches(SETTING, run_of(rails=True))
    assert [launch["environment"]["NCCL_IB_HCA"] for launch in rails] == [f"={HCAS[rail]}" for rail in range(4)]
    assert {launch["min_busbw_gbps"] for launch in rails} == {LIMIT / 4}
    assert {launch["max_bytes"] for launch in rails} == {str(1 << 30)}
    assert {launch["needs"] for launch in rails} == {whole["id"]}
    assert rails[2]["environment"]["NCCL_ALGO"] == "RING" and SETTING.environment["NCCL_IB_HCA"].count(",") == 3
    for run in (run_of("rails", "whole", True), run_of("pair", "rail", True)):
        found = launches(SETTING, run)
        assert [launch["id"] for launch in found] == [f"000007-rail{rail}" for rail in range(4)]
        assert {launch["needs"] for launch in found} == {""}


def test_alltoall_is_its_own_program_with_a_limit_of_the_same_network() -> None:
    setting = dataclasses.replace(SETTING, program="/opt/nccl/all_reduce_perf_mpi")
    (launch,) = launches(setting, run_of("alltoall", "whole", nodes=("gb1", "gb2")))
    assert launch["program"] == "/opt/nccl/alltoall_perf_mpi" and "NCCL_ALGO" not in launch["environment"]
    # 2 x 4 GPUs: 4 of a GPU's 7 messages leave the node, each GPU has one NIC of 50 GB/s.
    assert launch["min_busbw_gbps"] == pytest.approx(50 * 7 / 4)


def test_one_node_has_its_own_limit_and_all_its_ways() -> None:
    setting = dataclasses.replace(SETTING, node_busbw_gbps=650)
    (launch,) = launches(setting, run_of("node", "node", nodes=("gb1",)))
    assert launch["min_busbw_gbps"] == 650 and "NCCL_IB_HCA" not in launch["environment"]


@pytest.mark.parametrize("rules", [{"nonsense": 1}, {"looks": "2"}, {"looks": True}, {"kinds": 3}, {"rails": 2}])
def test_rules_that_the_planner_has_not_are_refused(rules: dict[str, t.Any]) -> None:
    with pytest.raises(AidcError, match="rules"):
        rules_of(rules, ["ring"], 4, False, 0.9)


def test_rules_are_the_planners_with_what_the_site_changes() -> None:
    rules = rules_of({"looks": 2, "clear": 6}, ["rails", "ring"], 2, True, 0.7)
    assert (rules.looks, rules.clear, rules.rails, rules.node_stage) == (2, 6.0, 2, True)
    assert rules.kinds == ("ring", "rails") and (rules.pass_fraction, rules.fail_fraction) == (0.7, 0.7)
    for kinds in ([], ["rails"], ["ring", "tree"]):
        with pytest.raises(AidcError, match="kinds"):
            rules_of({}, kinds, 2, True, 0.9)


# -- outcomes ---------------------------------------------------------------------------------------------


def answer(state: str, ratio: float | None = None) -> dict[str, t.Any]:
    return {"verdict": {"state": state, "reason": f"it is {state}", "ratio": ratio}}


def test_all_rails_and_each_alone_become_one_outcome() -> None:
    found = outcome(run_of(rails=True), {"000007-all": answer("SLOW", 0.5), "000007-rail0": answer("PASS", 0.97),
                                         "000007-rail1": answer("CRASH"), "000007-rail2": answer("LAUNCH")})
    assert (found.state, found.ratio, found.rails) == ("ok", 0.5, {0: 0.97, 1: 0.0})


@pytest.mark.parametrize(("answers", "state", "ratio"), [
    ({"rail0": answer("PASS", 0.97), "rail1": answer("SLOW", 0.4)}, "ok", 0.4),
    ({"rail0": answer("PASS", 0.97), "rail1": answer("HANG")}, "ok", 0.0),
    ({"rail0": answer("CRASH"), "rail1": answer("CRASH")}, "crash", None),
    ({"rail0": answer("PASS", 0.97), "rail1": answer("WRONG", 0.9)}, "wrong", 0.9),
    ({"rail0": answer("LAUNCH"), "rail1": answer("INVALID", 0.9)}, "none", None),
    ({"all": answer("LAUNCH")}, "none", None),
    ({"all": answer("HANG"), "rail0": {"verdict": None}}, "hang", None),
    ({"all": {**answer("HANG", 0.97), "whole": True}}, "none", None),
    ({"all": {**answer("HANG", 0.97), "whole": False}}, "hang", 0.97),
    ({}, "none", None),
])
def test_a_failed_rail_is_at_zero_and_no_result_is_no_evidence(
        answers: dict[str, t.Any], state: str, ratio: float | None) -> None:
    found = outcome(run_of("rails", "whole", True), {f"000007-{part}": one for part, one in answers.items()})
    assert (found.state, found.ratio) == (state, ratio)


def test_an_outcome_without_a_ratio_is_none_of_both() -> None:
    assert Outcome("ok").value is None
