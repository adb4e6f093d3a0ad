# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stage 0, the whole pool, faults that come and go, "halves pass, whole fails"."""
from __future__ import annotations

import itertools

import pytest

from plugins.module_utils._gate.model import Outcome, Run
from plugins.module_utils._gate.survey import comes_and_goes

from .fabric import SOUND, Fabric, stages


def test_slow_alone_is_convicted_without_the_network() -> None:
    conclusion = Fabric(8, alone={"n3": 0.6}).solve()
    assert (conclusion.verdict, conclusion.bad_nodes) == ("FAIL", ["n3"])
    assert "by itself" in conclusion.convicted[0].text
    assert stages(conclusion) == ["node", "whole"]
    # The rest was looked at without it.
    assert conclusion.verified


def test_wrong_data_alone_twice_is_convicted_once_is_not() -> None:
    turn = itertools.count()

    def once(run: Run) -> Outcome | None:
        return Outcome("wrong") if run.nodes == ("n2",) and next(turn) == 0 else None

    assert Fabric(8, rule=once).solve().verdict == "PASS"
    always = Fabric(8, rule=lambda run: Outcome("wrong") if run.nodes == ("n2",) else None).solve()
    assert [(one.nodes, one.symptom) for one in always.convicted] == [(("n2",), "wrong")]


def test_close_to_the_limit_alone_is_left_to_the_network() -> None:
    conclusion = Fabric(8, alone={"n2": 0.9 / SOUND}).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("PASS", [])


def test_slow_first_then_close_is_a_note() -> None:
    values = itertools.chain([0.85] * 4, itertools.repeat(0.9))
    fabric = Fabric(8, rule=lambda run: Outcome("ok", next(values)) if run.nodes == ("n2",) else None)
    conclusion = fabric.solve()
    assert conclusion.convicted == []
    assert any("n2" in note for note in conclusion.notes)


@pytest.mark.parametrize(("every", "verdict"), [(0.88, "SLOW"), (0.6, "FAIL")])
def test_all_alike_blames_nobody(every: float, verdict: str) -> None:
    conclusion = Fabric(16, every=every).solve()
    assert (conclusion.verdict, conclusion.convicted, conclusion.suspects) == (verdict, [], [])
    assert "nobody is blamed" in conclusion.fleet_wide


def test_more_than_half_slow_alone_is_a_common_cause() -> None:
    conclusion = Fabric(9, alone={f"n{i}": 0.7 for i in range(6)}).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert "all nodes alike" in conclusion.fleet_wide


def test_whole_slow_halves_good_blames_no_node() -> None:
    conclusion = Fabric(32, 8, crowd=(16, 0.7)).solve()
    assert (conclusion.verdict, conclusion.convicted) == ("FAIL", [])
    assert "both halves pass" in conclusion.scale
    assert conclusion.reason == conclusion.scale


def test_one_leaf_slow_in_groups_is_named() -> None:
    def rule(run: Run) -> Outcome | None:
        crowd = sum(name in ("n8", "n9", "n10", "n11") for name in run.nodes)
        return Outcome("ok", 0.7) if crowd > 2 and run.kind != "node" else None

    conclusion = Fabric(16, 4, rule=rule).solve()
    assert "under leaf l2" in conclusion.scale
    assert conclusion.convicted == []


@pytest.mark.parametrize(("size", "text"), [(3, "too few nodes"), (4, "larger group"), (8, "larger group")])
def test_slow_in_every_larger_group(size: int, text: str) -> None:
    conclusion = Fabric(size, 2, crowd=(2 if size == 3 else 1, 0.7),
                        rule=lambda run: Outcome("ok", SOUND) if run.kind == "pair" else None).solve()
    assert text in conclusion.scale
    assert conclusion.verdict == "FAIL"


def test_pool_of_one_leaf_is_split_by_nodes() -> None:
    conclusion = Fabric(12, 12, crowd=(6, 0.7)).solve()
    assert "both halves pass" in conclusion.scale


def test_slow_at_first_and_good_later_is_unstable_not_pass() -> None:
    left = itertools.chain([0.7] * 4, itertools.repeat(SOUND))
    fabric = Fabric(8, rule=lambda run: Outcome("ok", next(left)) if run.stage == "whole" else None)
    conclusion = fabric.solve()
    assert (conclusion.verdict, conclusion.convicted) == ("SLOW", [])
    assert "unstable" in conclusion.reason


def test_a_fault_in_half_of_the_runs_is_found() -> None:
    turn = itertools.count()

    def rule(run: Run) -> Outcome | None:
        bad = "n6" in run.nodes and run.kind != "node" and next(turn) % 2 == 0
        return Outcome("ok", 0.5) if bad else None

    conclusion = Fabric(12, rule=rule).solve()
    assert conclusion.bad_nodes == ["n6"]
    assert conclusion.convicted[0].symptom in ("intermittent", "slow")


def test_a_rare_outlier_is_no_fault() -> None:
    turn = itertools.count()

    def rule(run: Run) -> Outcome | None:
        return Outcome("ok", 0.76) if len(run.nodes) > 3 and next(turn) == 4 else None

    assert Fabric(8, rule=rule).solve().verdict == "PASS"


def test_the_hunt_can_be_switched_off() -> None:
    conclusion = Fabric(8).solve(flaky_repeats=0, looks=1)
    assert (conclusion.verdict, conclusion.batches) == ("PASS", 6)
    # Good runs that stop coming are no pass.
    turn = itertools.count()
    fabric = Fabric(8, rule=lambda run: Outcome("none") if len(run.nodes) > 3 and next(turn) >= 6 else None)
    assert fabric.solve().verdict == "INCOMPLETE"


@pytest.mark.parametrize(("values", "answer"), [
    ([0.5, 0.97], False), ([0.5, 0.97, 0.97, 0.5], True), ([0.95, 0.97, 0.93, 0.96], False),
    ([0.5, 0.97, 0.97, 0.97, 0.97, 0.97], False),
])
def test_two_levels(values: list[float], answer: bool) -> None:
    assert comes_and_goes(values) is answer
