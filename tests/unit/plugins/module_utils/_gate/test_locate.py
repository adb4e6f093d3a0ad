# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages 2 and 4: every kind of fault in small pools, fleet-wide causes, rails."""
from __future__ import annotations

import pytest

from plugins.module_utils._gate.model import Outcome, OutcomeState, Run

from .fabric import Fabric, stages

SIZES = [5, 6, 7, 8, 9, 16, 33]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_slow_node(size: int, seed: int) -> None:
    # 1 NIC of 8, of 4, of 2 (facts: 12.5, 25, 50 %).
    for factor in (0.875, 0.75, 0.5):
        bad = f"n{(seed * 7) % size}"
        conclusion = Fabric(size, 8, nodes={bad: factor}).solve(seed)
        assert (conclusion.verdict, conclusion.bad_nodes, conclusion.verified) == ("FAIL", [bad], True)
        assert conclusion.suspects == []
        assert conclusion.noise is not None and conclusion.noise < 0.02


def test_the_only_node_of_a_leaf_cannot_be_told_from_its_uplink() -> None:
    conclusion = Fabric(5, 4, nodes={"n4": 0.8}).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert [one["node"] for one in conclusion.suspects] == ["n4"]
    # With a third leaf it can.
    assert Fabric(9, 4, nodes={"n8": 0.8}).solve().bad_nodes == ["n8"]


@pytest.mark.parametrize("size", [8, 16, 33])
@pytest.mark.parametrize("state", ["hang", "crash", "wrong"])
def test_one_node_that_breaks_runs(size: int, state: OutcomeState) -> None:
    conclusion = Fabric(size, states={"n4": state}).solve()
    assert [(one.nodes, one.symptom) for one in conclusion.convicted] == [(("n4",), state)]
    # A hang costs a time-out: few of them.
    assert conclusion.batches < 40


@pytest.mark.parametrize("seed", range(6))
def test_three_at_once(seed: int) -> None:
    fabric = Fabric(24, 8, nodes={"n1": 0.875, "n9": 0.5}, states={"n20": "hang"})
    assert fabric.solve(seed).bad_nodes == ["n1", "n20", "n9"]


def test_a_rail_at_half_rate_is_named() -> None:
    # 1 of 8 at half rate: 0.94 of the node, which passes; only its own rail shows it.
    fabric = Fabric(16, rail_count=8, nodes={"n3": 0.9375}, rails={("n3", 5): 0.5})
    conclusion = fabric.solve()
    assert [(one.kind, one.nodes, one.rails) for one in conclusion.convicted] == [("rail", ("n3",), (5,))]
    assert "rail 5" in conclusion.reason


def test_stage_four_names_the_rail_of_a_slow_node() -> None:
    def rule(run: Run) -> Outcome | None:
        if run.stage != "rail" or "n3" not in run.nodes:
            return None
        return Outcome("ok", 0.85, {rail: 0.0 if rail == 2 else 0.97 for rail in range(8)})

    fabric = Fabric(16, rail_count=8, nodes={"n3": 0.875}, rule=rule)
    conclusion = fabric.solve()
    assert [(one.kind, one.rails) for one in conclusion.convicted] == [("rail", (2,))]
    assert "rail" in stages(conclusion)


def test_a_node_slow_on_all_rails_is_no_rail() -> None:
    fabric = Fabric(16, rail_count=4, nodes={"n3": 0.5}, rails={("n3", rail): 0.5 for rail in range(4)})
    assert [(one.kind, one.rails) for one in fabric.solve().convicted] == [("node", ())]


def test_two_rails_on_two_nodes() -> None:
    fabric = Fabric(16, rail_count=8, rails={("n3", 5): 0.5, ("n12", 0): 0.5})
    found = {(one.nodes[0], one.rails) for one in fabric.solve().convicted}
    assert found == {("n3", (5,)), ("n12", (0,))}


def test_no_good_pair_blames_nobody() -> None:
    fabric = Fabric(16, rule=lambda run: Outcome("ok", 0.85) if len(run.nodes) > 1 else None)
    conclusion = fabric.solve()
    assert (conclusion.verdict, conclusion.convicted) == ("SLOW", [])
    assert "no pair is good" in conclusion.reason
    assert stages(conclusion).count("pair") == 4


def test_hardly_any_good_pair_is_common_too() -> None:
    def rule(run: Run) -> Outcome | None:
        good = len(run.nodes) < 4 and {"n0", "n1", "n2"} & set(run.nodes)
        return None if len(run.nodes) == 1 or good else Outcome("ok", 0.7)

    conclusion = Fabric(64, 16, rule=rule).solve()
    assert "pairs are good" in conclusion.reason
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert "nobody is blamed" in conclusion.reason


def test_more_than_half_guilty_is_a_common_cause() -> None:
    conclusion = Fabric(12, 12, nodes={f"n{i}": 0.6 for i in range(7)}).solve(2)
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert "nobody is blamed" in conclusion.reason


def test_a_third_of_the_pool_is_still_found() -> None:
    bad = {f"n{i}": 0.8 for i in range(0, 24, 3)}
    assert set(Fabric(24, 24, nodes=bad).solve().bad_nodes) == set(bad)


def test_cost_does_not_grow_with_the_pool() -> None:
    rounds = set()
    for size in (16, 64, 256):
        conclusion = Fabric(size, 16, rail_count=8, nodes={"n7": 0.875}).solve()
        rounds.add(sum(stage not in ("node", "whole") for stage in stages(conclusion)))
        assert conclusion.batches < 50
    assert max(rounds) <= 6
