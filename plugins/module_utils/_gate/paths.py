# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Slow between two sound nodes: the path from leaf to leaf, this pair only, or one of the two after all?

Each end is tried with another node of the other end's leaf. Both slow: all traffic between the leaves is. None
slow: the pair is run once more from the start, for a node that comes and goes looks just like that.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .case import Case
from .match import Group, LeafPair, crossed
from .model import Conviction
from .stats import Probe

# A pair that is slow in itself is slow always; some of the runs may be lucky.
_LUCKY = 0.1


@dataclass
class PathCheck:
    pair: Probe
    cross: list[Probe] = field(default_factory=list)
    again: Probe | None = None

    @property
    def slow(self) -> list[bool]:
        return [probe.bad for probe in self.cross]

    @property
    def wide(self) -> bool:
        return bool(self.cross) and all(self.slow)

    @property
    def done(self) -> bool:
        return self.again is not None or any(self.slow)

    def wants(self, case: Case, used: set[str], rails: bool) -> list[Probe]:
        """What to run in the coming round, with nodes that are free in it."""
        if self.done or used.intersection(self.pair.nodes):
            return []
        if not self.cross:
            self.cross = [Probe(group, rails=rails) for group in self._partners(case, used)]
            if self.cross:
                return self.cross
            if self._partners(case, set()):
                return []
        self.again = Probe(self.pair.nodes, rails=rails)
        return [self.again]

    def _partners(self, case: Case, used: set[str]) -> list[Group]:
        first, second = self.pair.nodes
        leaves = case.leaf_of[first], case.leaf_of[second]
        free = sorted(name for name in case.cleared if case.leaf_of[name] in leaves
                      and name not in used and name not in self.pair.nodes)
        far = next((name for name in free if case.leaf_of[name] == leaves[1]), None)
        near = next((name for name in free if case.leaf_of[name] == leaves[0] and name != far), None)
        return [(first, far), (second, near)] if far and near else []

    def lasting(self, threshold: float) -> bool:
        # A pair whose runs all ended without a figure has no values.
        values = [value for probe in (self.pair, self.again) if probe for value in probe.values.get("all", ())]
        fast = sum(value >= threshold for value in values)
        return bool(self.again and self.again.bad) and fast <= _LUCKY * len(values)

    def verdict(self, case: Case) -> Conviction | None:
        """The path, or nobody: then what is left is a suspicion."""
        first, second = self.pair.nodes
        if any(self.slow) and not self.wide:
            guilty, other = (first, second) if self.slow[0] else (second, first)
            case.suspects[guilty] = f"slow with {other} and another node of its leaf, good with others"
            return None
        leaves = tuple(sorted({case.leaf_of[first], case.leaf_of[second]}))
        if not self.wide and not self.lasting(case.scale(True).threshold):
            case.suspects.setdefault(first, f"comes and goes together with {second}")
            case.suspects.setdefault(second, f"comes and goes together with {first}")
            return None
        scope = f"leaf {' to leaf '.join(leaves)}" if self.wide else "this pair only"
        if not self.cross:
            scope += ", not checked with other nodes of these leaves"
        text = f"{first} - {second}: slow together, good with others ({scope}); drain neither"
        probes = [self.pair, *self.cross, *([self.again] if self.again else ())]
        return Conviction("path", (first, second), self.pair.symptom, (), leaves, "leaves" if self.wide else "pair",
                          [probe.evidence() for probe in probes], text)


def verdicts(case: Case, checks: t.Sequence[PathCheck], cleared: t.Sequence[Probe]) -> list[Conviction]:
    """``cleared``: slow runs of suspects that turned out to be sound; two over the same leaves are a path."""
    found: dict[tuple[str, ...], Conviction] = {}
    for check in checks:
        one = check.verdict(case)
        if one is None:
            continue
        key = one.leaves if one.scope == "leaves" else one.nodes
        if key in found:
            found[key].evidence += one.evidence
        else:
            found[key] = one
    for leaves, probes in _towards(case, cleared).items():
        ends = probes[0].nodes
        if len(probes) > 1 and leaves not in found:
            text = f"leaf {leaves[0]} to leaf {leaves[1]}: slow in {len(probes)} pairs of sound nodes; drain none"
            evidence = [probe.evidence() for probe in probes]
            found[leaves] = Conviction("path", ends, "slow", (), leaves, "leaves", evidence, text)
        elif leaves not in found:
            case.suspects[ends[0]] = f"slow with {ends[1]} only: perhaps the path between them"
    return list(found.values())


def _towards(case: Case, probes: t.Sequence[Probe]) -> dict[LeafPair, list[Probe]]:
    paths: dict[LeafPair, list[Probe]] = {}
    for probe in probes:
        for leaves in crossed(probe.nodes, case.leaf_of):
            paths.setdefault(leaves, []).append(probe)
    return paths
