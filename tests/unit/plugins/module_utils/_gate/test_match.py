# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils._gate import match
from plugins.module_utils._gate.model import Node


def nodes(*sizes: int) -> list[Node]:
    return [Node(f"n{leaf}.{i}", f"l{leaf}") for leaf, size in enumerate(sizes) for i in range(size)]


def leaf_of(members: list[Node]) -> dict[str, str]:
    return {node.name: node.leaf for node in members}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 99), st.integers(0, 3))
def test_everybody_runs_exactly_once(sizes: list[int], seed: int, turn: int) -> None:
    members = nodes(*sizes)
    first = match.inside(members, seed, "x")
    for groups in (first, match.across(members, seed, "x", turn, first)):
        names = [name for group in groups for name in group]
        assert len(names) == len(set(names))
        assert set(names) == {node.name for node in members} or len(members) == 1
        assert all(2 <= len(group) <= 3 for group in groups)
        assert sum(len(group) == 3 for group in groups) == len(members) % 2 * (len(members) > 1)


def test_inside_stays_inside_and_across_crosses() -> None:
    members = nodes(4, 4, 4, 4)
    leaves = leaf_of(members)
    assert all(not match.crossed(group, leaves) for group in match.inside(members, 1, "x"))
    assert all(match.crossed(group, leaves) for group in match.across(members, 1, "x", 0, []))


@pytest.mark.parametrize("sizes", [(4, 4), (4, 4, 4, 4), (2,) * 8, (3,) * 7, (32,) * 16, (2, 3, 4)])
def test_turns_cover_every_leaf_pair(sizes: tuple[int, ...]) -> None:
    members = nodes(*sizes)
    leaves = leaf_of(members)
    seen = set()
    for turn in range(match.rounds_to_cover(members)):
        for group in match.across(members, 3, "x", turn, []):
            seen |= match.crossed(group, leaves)
    assert seen == set(itertools.combinations(sorted(set(leaves.values())), 2))


def test_second_matching_of_one_leaf_is_another() -> None:
    members = nodes(12)
    first = match.inside(members, 1, "x")
    second = match.across(members, 1, "x", 0, first)
    assert not {frozenset(group) for group in first} & {frozenset(group) for group in second}
    assert match.rounds_to_cover(members) == 0


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_round_robin_has_every_pair_once(count: int) -> None:
    names = [f"n{i}" for i in range(count)]
    pairs = [frozenset(pair) for turn in match.round_robin(names) for pair in turn]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2


def test_order_depends_on_seed_and_purpose_only() -> None:
    names = [f"n{i}" for i in range(50)]
    assert match.shuffled(names, 1, "a") == match.shuffled(reversed(names), 1, "a")
    assert match.shuffled(names, 1, "a") != match.shuffled(names, 2, "a") != match.shuffled(names, 2, "b")
    # The same in every Python version: resumed searches depend on it.
    assert match.shuffled(["a", "b", "c", "d", "e"], 7, "x") == ["a", "e", "b", "d", "c"]
