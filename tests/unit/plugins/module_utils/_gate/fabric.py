# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fabric without noise, for tests of single decisions (error rates: ``tests/sim``)."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from plugins.module_utils._gate.model import Conclusion, Node, Outcome, OutcomeState, Rules, Run
from plugins.module_utils._gate.plan import Planner

SOUND = 0.97


@dataclass
class Fabric:
    """``nodes``: factor of a node in the network; ``alone``: by itself; ``states``: what it does to a run;
    ``paths``: factor between two leaves; ``pairs``: between two nodes; ``rails``: of one rail of a node."""

    size: int
    leaf_size: int = 4
    rail_count: int = 0
    nodes: dict[str, float] = field(default_factory=dict)
    alone: dict[str, float] = field(default_factory=dict)
    states: dict[str, OutcomeState] = field(default_factory=dict)
    paths: dict[tuple[str, str], float] = field(default_factory=dict)
    pairs: dict[tuple[str, str], float] = field(default_factory=dict)
    rails: dict[tuple[str, int], float] = field(default_factory=dict)
    every: float = 1.0
    # Slow only in runs of more nodes than that.
    crowd: tuple[int, float] = (100_000, 1.0)
    # Overrides everything for a run, if it gives something.
    rule: t.Callable[[Run], Outcome | None] = lambda run: None
    seen: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.members = [Node(f"n{i}", f"l{i // self.leaf_size}") for i in range(self.size)]
        self.leaf_of = {node.name: node.leaf for node in self.members}

    def run(self, run: Run) -> Outcome:
        self.seen.append(run)
        forced = self.rule(run)
        if forced is not None:
            return forced
        if run.kind == "node":
            return Outcome("ok", SOUND * self.every * self.alone.get(run.nodes[0], 1.0))
        for name in run.nodes:
            if name in self.states:
                return Outcome(self.states[name])
        value = min([1.0, *(self.nodes.get(name, 1.0) for name in run.nodes), *self._links(run)])
        value *= SOUND * self.every * (self.crowd[1] if len(run.nodes) > self.crowd[0] else 1.0)
        rails = {}
        if run.rails:
            rails = {rail: SOUND * self.every * min(self.rails.get((name, rail), 1.0) for name in run.nodes)
                     for rail in range(self.rail_count)}
        return Outcome("ok", value, rails)

    def _links(self, run: Run) -> t.Iterator[float]:
        leaves = {self.leaf_of[name] for name in run.nodes}
        yield from (factor for pair, factor in self.paths.items() if leaves.issuperset(pair))
        yield from (factor for pair, factor in self.pairs.items() if set(run.nodes).issuperset(pair))

    def planner(self, seed: int = 1, **rules: t.Any) -> Planner:
        return Planner(self.members, Rules(rails=self.rail_count, **rules), seed, "test")

    def solve(self, seed: int = 1, **rules: t.Any) -> Conclusion:
        planner = self.planner(seed, **rules)
        self.finish(planner)
        return planner.conclusion()

    def finish(self, planner: Planner) -> None:
        for _ in range(1000):
            runs = planner.next_runs()
            if not runs:
                return
            names = [name for run in runs for name in run.nodes]
            assert len(names) == len(set(names)), "runs given out together share a node"
            planner.record_all({run.id: self.run(run) for run in runs})
        raise AssertionError("the search does not end")


def stages(conclusion: Conclusion) -> list[str]:
    return [entry["stage"] for entry in conclusion.history]
