# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner's contract: asks and is told, any order, saved and resumed anywhere, deterministic, small pools."""
from __future__ import annotations

import json
import random
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils._gate.model import Node, Outcome, Rules, Run
from plugins.module_utils._gate.plan import PlanError, Planner
from tests.sim.trial import solve as simulate
from tests.sim.world import World

from .fabric import Fabric, stages


def reload(planner: Planner) -> Planner:
    return Planner.from_dict(json.loads(json.dumps(planner.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("fabric", [
    Fabric(8, rail_count=8, nodes={"n2": 0.875}), Fabric(9, states={"n4": "hang"}),
    Fabric(8, paths={("l0", "l1"): 0.6}), Fabric(8, every=0.85), Fabric(8, crowd=(4, 0.7)),
    Fabric(3, nodes={"n0": 0.5}), Fabric(8, rail_count=4, rails={("n5", 2): 0.5}), Fabric(1),
    Fabric(6, alone={"n3": 0.5}),
])
def test_resumed_after_every_single_outcome(fabric: Fabric) -> None:
    expected = fabric.solve().to_dict()
    planner = fabric.planner()
    while True:
        runs = planner.next_runs()
        if not runs:
            break
        planner.record(runs[-1].id, fabric.run(runs[-1]))
        planner = reload(planner)
        if len(runs) > 1:
            assert planner.next_runs() == runs[:-1]
    assert planner.done
    assert planner.conclusion().to_dict() == expected


def test_order_of_outcomes_does_not_matter() -> None:
    fabric = Fabric(12, nodes={"n1": 0.8, "n7": 0.7})
    expected = fabric.solve(3).to_dict()
    planner = fabric.planner(3)
    generator = random.Random(1)
    while True:
        runs = planner.next_runs()
        if not runs:
            break
        run = generator.choice(runs)
        planner.record(run.id, fabric.run(run))
    assert planner.conclusion().to_dict() == expected


def test_same_seed_same_search_other_seed_other_pairs() -> None:
    def asked(seed: int) -> list[Run]:
        fabric = Fabric(16, nodes={"n3": 0.8})
        fabric.solve(seed)
        return fabric.seen

    assert asked(1) == asked(1)
    assert [run.nodes for run in asked(1)] != [run.nodes for run in asked(2)]


def test_what_does_not_fit_is_refused() -> None:
    fabric = Fabric(4)
    planner = fabric.planner()
    run = planner.next_runs()[0]
    planner.record(run.id, Outcome("ok", 0.97))
    with pytest.raises(PlanError, match="not open"):
        planner.record(run.id, Outcome("ok", 0.97))
    with pytest.raises(PlanError, match="not open"):
        planner.record_all({"999999": Outcome("none")})
    with pytest.raises(PlanError, match="format 0"):
        Planner.from_dict({**planner.to_dict(), "format": 0})
    with pytest.raises(PlanError, match="not open"):
        Planner.from_dict({**planner.to_dict(), "outcomes": [["000077", {"state": "ok", "ratio": 0.9}]]})
    for names in (["a", "a"], [""]):
        with pytest.raises(PlanError, match="one entry for each node"):
            Planner([Node(name) for name in names])


def test_sound_pool_passes_with_a_handful_of_runs() -> None:
    conclusion = Fabric(64, 16, rail_count=8).solve()
    assert (conclusion.verdict, conclusion.verified, conclusion.loops) == ("PASS", True, 0)
    assert stages(conclusion) == ["node", "whole"]
    assert conclusion.batches <= 15
    assert json.loads(json.dumps(conclusion.to_dict()))["bad_nodes"] == []


def test_before_the_end_nothing_is_a_pass() -> None:
    planner = Fabric(4).planner()
    assert (planner.conclusion().verdict, planner.conclusion().done) == ("INCOMPLETE", False)


@pytest.mark.parametrize(("size", "verdict"), [(0, "INCOMPLETE"), (1, "INCOMPLETE"), (2, "PASS"), (3, "PASS")])
def test_small_sound_pools(size: int, verdict: str) -> None:
    conclusion = Fabric(size).solve()
    assert conclusion.verdict == verdict
    assert conclusion.convicted == []
    if size == 1:
        assert "network not tested" in conclusion.reason
        assert conclusion.not_tested[0]["node"] == "n0"


def test_a_pool_of_one_that_is_slow_by_itself_fails() -> None:
    conclusion = Fabric(1, alone={"n0": 0.7}).solve()
    assert (conclusion.verdict, conclusion.bad_nodes) == ("FAIL", ["n0"])


def test_of_two_nobody_can_be_blamed() -> None:
    conclusion = Fabric(2, nodes={"n1": 0.7}).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert {one["node"] for one in conclusion.suspects} == {"n0", "n1"}
    assert "nobody is blamed" in conclusion.reason


@pytest.mark.parametrize("bad", ["n0", "n1", "n2"])
def test_of_three_one_is_found(bad: str) -> None:
    conclusion = Fabric(3, nodes={bad: 0.8}).solve()
    assert (conclusion.verdict, conclusion.bad_nodes, conclusion.verified) == ("FAIL", [bad], True)


@pytest.mark.parametrize("ratio", [None, float("nan"), float("inf"), -1.0, 9.0])
def test_without_any_usable_result_nobody_is_blamed(ratio: float | None) -> None:
    state = "ok" if ratio is not None else "none"
    conclusion = Fabric(6, rule=lambda run: Outcome(state, ratio)).solve()  # type: ignore[arg-type]
    assert (conclusion.verdict, conclusion.convicted, conclusion.suspects) == ("INCOMPLETE", [], [])
    assert len(conclusion.not_tested) == 6


def test_everything_crashes() -> None:
    conclusion = Fabric(8, rule=lambda run: Outcome("crash")).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert "all nodes alike" in conclusion.reason


def test_launch_trouble_of_one_node_names_it_and_is_no_pass() -> None:
    def rule(run: Run) -> Outcome | None:
        return Outcome("none", note="ssh refused") if "n5" in run.nodes else None

    conclusion = Fabric(8, rule=rule).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("INCOMPLETE", [])
    assert [one["node"] for one in conclusion.not_tested] == ["n5"]
    # The same, but only with others: found by the pairs, and the rest is still judged.
    alone = Fabric(8, rule=lambda run: rule(run) if len(run.nodes) > 1 else None).solve()
    assert (alone.verdict, [one["node"] for one in alone.not_tested]) == ("INCOMPLETE", ["n5"])


def test_whole_pool_runs_that_never_start_are_no_pass() -> None:
    conclusion = Fabric(8, rule=lambda run: Outcome("none") if len(run.nodes) > 3 else None).solve()
    assert (conclusion.verdict, conclusion.convicted, conclusion.scale) == ("INCOMPLETE", [], "")


def test_limit_from_the_pool_itself_passes_nobody() -> None:
    conclusion = Fabric(8).solve(outliers_only=True)
    assert conclusion.verdict == "INCOMPLETE"
    assert Fabric(8, nodes={"n1": 0.7}).solve(outliers_only=True).bad_nodes == ["n1"]


def test_a_class_without_group_runs_is_judged_by_pairs() -> None:
    conclusion = Fabric(9, nodes={"n7": 0.8}).solve(kinds=(), node_stage=False)
    assert (conclusion.verdict, conclusion.bad_nodes, conclusion.verified) == ("FAIL", ["n7"], True)
    assert set(stages(conclusion)) == {"pair", "confirm"}
    assert Fabric(8).solve(kinds=(), node_stage=False).verdict == "PASS"


def test_no_loop_allowed_is_no_pass() -> None:
    assert Fabric(8, nodes={"n7": 0.8}).solve(loops=0).verdict == "FAIL"


def test_rules_survive_the_journey() -> None:
    rules = Rules(rails=4, kinds=("ring",), looks=2)
    assert Rules.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules


outcomes = st.builds(
    Outcome, st.sampled_from(["ok", "ok", "ok", "wrong", "crash", "hang", "none"]),
    st.one_of(st.none(), st.floats(0, 1.2), st.just(float("nan"))),
    st.dictionaries(st.integers(0, 3), st.floats(allow_nan=True), max_size=4))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 11), st.integers(1, 5), st.integers(0, 3), st.data())
def test_any_outcomes_end_and_convict_only_tested_nodes(size: int, leaf: int, seed: int, data: t.Any) -> None:
    pool = data.draw(st.lists(outcomes, min_size=1, max_size=12))
    generator = random.Random(seed)
    fabric = Fabric(size, leaf, rail_count=2, rule=lambda run: generator.choice(pool))
    conclusion = fabric.solve(seed)
    json.dumps(conclusion.to_dict(), allow_nan=False)
    assert conclusion.done
    untested = {one["node"] for one in conclusion.not_tested}
    assert not untested & set(conclusion.bad_nodes) or size == 1
    if conclusion.verdict == "PASS":
        assert not conclusion.convicted and not conclusion.suspects and not untested
    for one in conclusion.convicted:
        assert one.evidence and one.text


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 20), st.integers(0, 10_000))
def test_replay_in_the_middle_of_a_noisy_search(size: int, seed: int) -> None:
    world = World(size, 4, 0.03, seed, leaf_size=4)
    world.add_faults(1)
    expected = simulate(world, Rules(rails=4), seed).to_dict()
    world = World(size, 4, 0.03, seed, leaf_size=4)
    world.add_faults(1)
    planner, count = Planner(world.nodes, Rules(rails=4), seed), 0
    while True:
        runs = planner.next_runs()
        if not runs:
            break
        planner.record_all(world.outcomes(runs))
        count += 1
        if count % 7 == 0:
            planner = reload(planner)
    assert planner.conclusion().to_dict() == expected
