# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stage 3: two different partners that are known to be good, or nobody is convicted."""
from __future__ import annotations

import pytest

from plugins.module_utils._gate.case import Case
from plugins.module_utils._gate.confirm import Partners, Suspect
from plugins.module_utils._gate.model import Node, Outcome, Rules, Run
from plugins.module_utils._gate.stats import Probe

from .fabric import Fabric


def test_partners_of_the_convicted_are_two_and_good() -> None:
    fabric = Fabric(16, nodes={"n2": 0.8, "n9": 0.8})
    conclusion = fabric.solve()
    assert conclusion.bad_nodes == ["n2", "n9"]
    for one in conclusion.convicted:
        partners = {name for piece in one.evidence[:2] for name in piece["nodes"]} - {one.nodes[0]}
        assert len(partners) == 2
        assert not partners & {"n2", "n9"}
        assert len({fabric.leaf_of[name] for name in partners}) == 2


def test_worked_check_of_the_pair_samples() -> None:
    """Samples 71a-e: 05 is slow with two; 01 and 07 only ever met each other."""
    def rule(run: Run) -> Outcome | None:
        return Outcome("ok", 49 / 92) if "n5" in run.nodes and len(run.nodes) > 1 else None

    conclusion = Fabric(8, 8, rule=rule).solve()
    assert conclusion.bad_nodes == ["n5"]
    assert conclusion.convicted[0].kind == "node"


def test_two_bad_nodes_that_meet_do_not_clear_each_other() -> None:
    for seed in range(8):
        conclusion = Fabric(6, 6, nodes={"n0": 0.8, "n1": 0.8}).solve(seed)
        assert conclusion.bad_nodes == ["n0", "n1"]


@pytest.mark.parametrize("seed", range(5))
def test_a_leaf_cut_off_by_a_slow_path_loses_no_node(seed: int) -> None:
    """Two bad nodes under a leaf of four whose only way out is slow: the good two are not convicted."""
    fabric = Fabric(8, nodes={"n0": 0.875, "n1": 0.875}, paths={("l0", "l1"): 0.7})
    conclusion = fabric.solve(seed)
    assert set(conclusion.bad_nodes) <= {"n0", "n1"}
    assert any(one.kind == "path" and one.leaves == ("l0", "l1") for one in conclusion.convicted)
    assert conclusion.bad_nodes == ["n0", "n1"]


def suspect(*leaves_and_values: tuple[str, float]) -> tuple[Case, Suspect]:
    nodes = [Node("s", "l0"), *(Node(f"p{i}", leaf) for i, (leaf, _) in enumerate(leaves_and_values))]
    case = Case.of(nodes, Rules(), 1)
    one = Suspect("s")
    for i, (_, value) in enumerate(leaves_and_values):
        probe = Probe(("s", f"p{i}"), state="bad", worst=("all",))
        for _ in range(4):
            probe.add(Outcome("ok", value) if value else Outcome("hang"))
        one.runs.append(probe)
    return case, one


@pytest.mark.parametrize(("runs", "proven"), [
    ((("l0", 0.8),), False),
    ((("l0", 0.8), ("l1", 0.82)), True),
    # Both behind one path; an own-leaf partner decides, if it shows the same loss.
    ((("l1", 0.8), ("l1", 0.82)), False),
    ((("l1", 0.8), ("l1", 0.82), ("l0", 0.85)), True),
    ((("l1", 0.7), ("l1", 0.7), ("l0", 0.85)), False),
    # A path and a bad partner together: two different losses.
    ((("l0", 0.85), ("l1", 0.65)), False),
    ((("l0", 0.85), ("l1", 0.65), ("l0", 0.84)), True),
    ((("l1", 0.8), ("l2", 0.82)), True),
    ((("l0", 0.0), ("l1", 0.0)), True),
])
def test_when_it_is_proven(runs: tuple[tuple[str, float], ...], proven: bool) -> None:
    case, one = suspect(*runs)
    assert one.proven(case) is proven
    assert one.guilty(case) is proven
    case.cleared.add("s")
    assert not one.guilty(case)
    assert not one.open(case)


def test_wishes() -> None:
    leaves = ["l0", "l1", "l2", "l3"]
    case, one = suspect()
    assert one.wishes(case, leaves)[0] == "l0"
    case, one = suspect(("l0", 0.8))
    assert one.wishes(case, leaves)[0] in ("l1", "l2", "l3")
    case, one = suspect(("l1", 0.8))
    assert one.wishes(case, leaves) == ["l0", "l2", "l3", "l1"]
    case, one = suspect(("l1", 0.8), ("l1", 0.8))
    assert one.wishes(case, leaves) == ["l0", "l2", "l3"]


def test_partners_are_given_away_once() -> None:
    case = Case.of([Node("a", "l0"), Node("b", "l0"), Node("c", "l1")], Rules(), 1)
    pool = Partners.of(case, ["a", "b", "c"], "x")
    first = pool.take(["l0"], ())
    assert pool.take(["l0", "l1"], ()) != first
    assert pool.take(["l1"], ("c",)) is None
    assert pool.take(["l0", "l1"], ()) == "c"
    assert pool.take(["l0", "l1"], ()) is None
