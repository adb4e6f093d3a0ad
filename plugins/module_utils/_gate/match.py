# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Who runs with whom: random matchings of all nodes, inside leaves and across them. Linear in the nodes."""
from __future__ import annotations

import hashlib
import typing as t

from .model import Node

Group = tuple[str, ...]
LeafPair = tuple[str, str]
# Up to here every pair is tried (n - 1 rounds): two matchings of so few nodes may hold no good pair.
ROUND_ROBIN_NODES = 4


def shuffled(names: t.Iterable[str], seed: int, salt: str) -> list[str]:
    """A random order that is the same in every Python version (``random`` promises that only in part)."""
    head = f"{seed}|{salt}|"
    return sorted(names, key=lambda name: (hashlib.sha256((head + name).encode()).digest(), name))


def by_leaf(nodes: t.Iterable[Node]) -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for node in nodes:
        leaves.setdefault(node.leaf, []).append(node.name)
    return leaves


def leaf_pair(first: str, second: str) -> LeafPair:
    return (first, second) if first <= second else (second, first)


def round_robin(names: list[str]) -> list[list[Group]]:
    """All pairs in n - 1 rounds (circle method); with an odd count one node rests in each round."""
    ring: list[str] = names if len(names) % 2 == 0 else [*names, ""]
    half = len(ring) // 2
    rounds: list[list[Group]] = []
    for turn in range(len(ring) - 1):
        rest = ring[1:]
        circle = [ring[0], *rest[turn:], *rest[:turn]]
        pairs: list[Group] = [(circle[i], circle[-1 - i]) for i in range(half)]
        rounds.append([pair for pair in pairs if "" not in pair])
    return rounds


def inside(nodes: t.Sequence[Node], seed: int, salt: str) -> list[Group]:
    """Neighbours under the same leaf: shows access links and nodes. Odd ones out are matched across leaves."""
    groups: list[Group] = []
    left: list[str] = []
    for leaf, names in by_leaf(nodes).items():
        order = shuffled(names, seed, f"{salt}|{leaf}")
        groups += [(order[i], order[i + 1]) for i in range(0, len(order) - 1, 2)]
        left += order[len(order) - len(order) % 2:]
    return groups + _leftover(shuffled(left, seed, salt), groups, frozenset())


def across(nodes: t.Sequence[Node], seed: int, salt: str, turn: int, avoid: t.Collection[Group]) -> list[Group]:
    """Partners under other leaves, so that as many leaf-to-leaf paths as possible are used once.

    The leaves play a tournament; the n-th node of each leaf plays its (n + turn * nodes per leaf)-th round.
    """
    leaves = {leaf: shuffled(names, seed, f"{salt}|{leaf}") for leaf, names in by_leaf(nodes).items()}
    rounds = round_robin(shuffled(leaves, seed, f"{salt}|leaves")) if len(leaves) > 1 else []
    deepest = max((len(names) for names in leaves.values()), default=0)
    groups: list[Group] = []
    used: set[str] = set()
    for slot in range(deepest if rounds else 0):
        for first, second in rounds[(slot + turn * deepest) % len(rounds)]:
            if slot < len(leaves[first]) and slot < len(leaves[second]):
                groups.append((leaves[first][slot], leaves[second][slot]))
                used.update(groups[-1])
    # Column by column: neighbours in the list are mostly of different leaves.
    left = [names[slot] for slot in range(deepest) for names in leaves.values()
            if slot < len(names) and names[slot] not in used]
    return groups + _leftover(left, groups, frozenset(frozenset(group) for group in avoid))


def _leftover(names: list[str], groups: list[Group], avoid: t.Collection[frozenset[str]]) -> list[Group]:
    """Pairs of the rest; the last odd one joins a pair (which is taken out of ``groups`` if need be)."""
    half = len(names) // 2
    pairs = [(names[i], names[i + half]) for i in range(half)]
    for i in range(len(pairs)):
        other = (i + 1) % len(pairs)
        if frozenset(pairs[i]) in avoid and other != i:
            pairs[i], pairs[other] = (pairs[i][0], pairs[other][1]), (pairs[other][0], pairs[i][1])
    result: list[Group] = list(pairs)
    if len(names) % 2:
        if result:
            result[-1] = (*result[-1], names[-1])
        elif groups:
            result.append((*groups.pop(), names[-1]))
    return result


def rounds_to_cover(nodes: t.Sequence[Node]) -> int:
    """How many `across` matchings use every leaf-to-leaf path."""
    leaves = by_leaf(nodes)
    count = len(leaves)
    if count < 2:
        return 0
    tournament = count - 1 if count % 2 == 0 else count
    return -(-tournament // max(1, min(len(names) for names in leaves.values())))


def crossed(group: Group, leaf_of: t.Mapping[str, str]) -> set[LeafPair]:
    """The leaf-to-leaf paths a group uses."""
    leaves = sorted({leaf_of[name] for name in group})
    return {(first, second) for i, first in enumerate(leaves) for second in leaves[i + 1:]}
