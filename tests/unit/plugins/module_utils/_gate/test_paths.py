# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A slow path is reported with both ends, and drains nobody."""
from __future__ import annotations

import itertools

import pytest

from plugins.module_utils._gate.case import Case
from plugins.module_utils._gate.model import Node, Outcome, Rules, Run
from plugins.module_utils._gate.paths import PathCheck, verdicts
from plugins.module_utils._gate.stats import Probe

from .fabric import Fabric


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("size", "leaf"), [(8, 4), (24, 4), (64, 16)])
def test_leaf_to_leaf(size: int, leaf: int, seed: int) -> None:
    conclusion = Fabric(size, leaf, paths={("l0", "l1"): 0.6}).solve(seed)
    assert (conclusion.verdict, conclusion.bad_nodes) == ("FAIL", [])
    assert [(one.kind, one.leaves, one.scope) for one in conclusion.convicted] == [("path", ("l0", "l1"), "leaves")]
    assert "drain" in conclusion.reason
    assert conclusion.verified
    assert any("left out of the verification" in note for note in conclusion.notes)


def test_all_leaf_pairs_are_walked_if_need_be() -> None:
    """16 leaves of 4: one matching uses 4 of 15 rounds, so it takes several to meet the slow one."""
    conclusion = Fabric(64, 4, paths={("l3", "l11"): 0.6}).solve()
    assert [one.leaves for one in conclusion.convicted] == [("l11", "l3")]


def test_two_paths_and_a_node() -> None:
    fabric = Fabric(64, 16, nodes={"n40": 0.8}, paths={("l0", "l1"): 0.6, ("l0", "l2"): 0.7})
    conclusion = fabric.solve()
    assert {one.leaves for one in conclusion.convicted if one.kind == "path"} == {("l0", "l1"), ("l0", "l2")}
    assert conclusion.bad_nodes == ["n40"]


def test_one_pair_only() -> None:
    """Routing collision of one pair (nccl#325), whoever meets first."""
    found = 0
    for seed in range(12):
        fabric = Fabric(8, 8, pairs={("n1", "n6"): 0.6})
        conclusion = fabric.solve(seed)
        assert conclusion.bad_nodes == []
        found += any(one.kind == "path" and set(one.nodes) == {"n1", "n6"} and one.scope == "pair"
                     for one in conclusion.convicted)
    assert found


def test_a_path_inside_a_pool_of_two_leaves_cannot_be_verified_with_one_node_left() -> None:
    conclusion = Fabric(5, 4, paths={("l0", "l1"): 0.6}).solve()
    assert conclusion.bad_nodes == []
    assert conclusion.verdict == "FAIL"


def case_of(*leaves: str) -> Case:
    case = Case.of([Node(f"n{i}", leaf) for i, leaf in enumerate(leaves)], Rules(), 1)
    case.cleared = {node.name for node in case.nodes}
    return case


def bad(names: tuple[str, ...], *values: float, state: str = "bad") -> Probe:
    probe = Probe(names, state=state, worst=("all",))  # type: ignore[arg-type]
    for value in values or (0.6,) * 6:
        probe.add(Outcome("ok", value))
    return probe


def test_each_end_is_tried_with_the_other_leaf() -> None:
    case = case_of("l0", "l0", "l1", "l1")
    check = PathCheck(bad(("n0", "n2")))
    assert check.wants(case, {"n2"}, False) == []
    probes = check.wants(case, set(), False)
    assert [probe.nodes for probe in probes] == [("n0", "n3"), ("n2", "n1")]
    probes[0].state, probes[1].state = "bad", "good"
    assert check.done
    assert verdicts(case, [check], []) == []
    assert "n0" in case.suspects
    probes[1].state = "bad"
    assert [one.scope for one in verdicts(case, [check, check], [])] == ["leaves"]


def test_pair_is_run_again_and_must_be_slow_always() -> None:
    case = case_of("l0", "l1")
    check = PathCheck(bad(("n0", "n1")))
    again, = check.wants(case, set(), False)
    again.state = "bad"
    again.values["all"] = [0.6, 0.6, 0.6]
    one, = verdicts(case, [check], [])
    assert (one.scope, "not checked" in one.text) == ("pair", True)
    again.values["all"] = [0.6, 0.97, 0.97]
    assert verdicts(case, [check], []) == []
    assert set(case.suspects) == {"n0", "n1"}


def test_a_pair_that_gives_no_result_again_is_a_suspicion() -> None:
    case = case_of("l0", "l1")
    check = PathCheck(bad(("n0", "n1")))
    again, = check.wants(case, set(), False)
    again.add(Outcome("ok", None))
    again.state = "untested"
    assert verdicts(case, [check], []) == []
    assert set(case.suspects) == {"n0", "n1"}


def test_partners_busy_in_this_round_are_waited_for() -> None:
    case = case_of("l0", "l0", "l1", "l1")
    check = PathCheck(bad(("n0", "n2")))
    assert check.wants(case, {"n3"}, False) == []
    assert not check.done


def test_slow_runs_of_the_cleared_point_to_the_path() -> None:
    case = case_of("l0", "l0", "l1", "l1")
    two = [bad(("n0", "n2")), bad(("n1", "n3"))]
    assert [one.leaves for one in verdicts(case, [], two)] == [("l0", "l1")]
    assert verdicts(case, [], two[:1]) == []
    assert "n0" in case.suspects


def test_a_node_that_comes_and_goes_is_not_taken_for_a_path() -> None:
    turn = itertools.cycle([0.5, 0.97, 0.5, 0.5, 0.97, 0.97, 0.5])

    def rule(run: Run) -> Outcome | None:
        return Outcome("ok", next(turn)) if "n6" in run.nodes and run.kind != "node" else None

    conclusion = Fabric(16, rule=rule).solve()
    assert not any(one.kind == "path" for one in conclusion.convicted)


def test_a_pair_that_never_runs_again_is_not_lasting() -> None:
    """Found by hypothesis: no outcome of the second look has a figure."""
    pair, again = Probe(("a", "b")), Probe(("a", "b"))
    pair.add(Outcome("wrong"))
    again.add(Outcome("ok"))
    assert (pair.values, again.values, again.missing) == ({"all": [0.0]}, {}, 1)
    assert not PathCheck(pair, again=again).lasting(0.9)
