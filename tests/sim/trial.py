# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many clusters, one planner each: what was missed, who was convicted wrongly, how long it took."""
from __future__ import annotations

import math
import typing as t
from collections import Counter
from dataclasses import dataclass, field

from plugins.module_utils._gate.model import Conclusion, Rules
from plugins.module_utils._gate.plan import Planner

from .world import FAULTS, Fault, World

PLATFORM_RAILS = (8, 4, 2)
# Seconds the search may take in batches is not limited; this only stops a planner that never ends.
MOST_BATCHES = 2000


@dataclass
class Tally:
    """Sums over the clusters of one row of the table."""

    clusters: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    # Missed, but at least named as a suspect or, for a path, in the text on the scale.
    hinted: Counter[str] = field(default_factory=Counter)
    wrong_nodes: int = 0
    wrong_paths: int = 0
    rails_named: int = 0
    rails_wrong: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    rounds: list[int] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    loops: list[int] = field(default_factory=list)

    def add(self, world: World, conclusion: Conclusion) -> None:
        self.clusters += 1
        bad = set(conclusion.bad_nodes)
        suspects = {one["node"] for one in conclusion.suspects}
        paths = {one.leaves for one in conclusion.convicted if one.kind == "path"}
        for fault in world.faults:
            kind = fault_name(fault, world.rails)
            self.faults[kind] += 1
            found = fault.where in paths if fault.kind == "path" else fault.where[0] in bad
            self.missed[kind] += not found
            self.hinted[kind] += not found and (fault.where[0] in suspects or bool(conclusion.scale))
        self.wrong_nodes += bool(bad - {fault.where[0] for fault in world.faults if fault.kind != "path"})
        self.wrong_paths += bool(paths - {fault.where for fault in world.faults if fault.kind == "path"})
        self._rails(world, conclusion)
        self.verdicts[conclusion.verdict] += 1
        # Stage 0 and stage 1 are there without a fault as well; the promise counts from the first matching on.
        self.rounds.append(sum(one["stage"] not in ("node", "whole") for one in conclusion.history))
        self.batches.append(conclusion.batches)
        self.loops.append(conclusion.loops)

    def _rails(self, world: World, conclusion: Conclusion) -> None:
        true = {(fault.where[0], fault.rail) for fault in world.faults if fault.kind in ("nic", "half_rail", "flaky")}
        named = {(one.nodes[0], rail) for one in conclusion.convicted for rail in one.rails}
        self.rails_named += len(named & true)
        self.rails_wrong += len(named - true)


def fault_name(fault: Fault, rails: int) -> str:
    return f"{fault.kind} 1/{rails}" if fault.kind in ("nic", "half_rail", "flaky") else fault.kind


def solve(world: World, rules: Rules, seed: int) -> Conclusion:
    planner = Planner(world.nodes, rules, seed)
    for _ in range(MOST_BATCHES):
        runs = planner.next_runs()
        if not runs:
            return planner.conclusion()
        planner.record_all(world.outcomes(runs))
    raise AssertionError(f"the search did not end within {MOST_BATCHES} batches (seed {seed})")


def trials(size: int, count: int, faults: int | None, noise: float, seed: int,
           kinds: t.Sequence[str] = FAULTS, rules: t.Callable[[int], Rules] | None = None) -> Tally:
    """``faults`` None: one to three. Each cluster's seed depends on its number alone."""
    tally = Tally()
    for number in range(count):
        rails = PLATFORM_RAILS[number % len(PLATFORM_RAILS)]
        world = World(size, rails, noise, seed * 1_000_003 + number)
        world.add_faults(1 + number // len(PLATFORM_RAILS) % 3 if faults is None else faults, kinds)
        tally.add(world, solve(world, rules(rails) if rules else Rules(rails=rails), number))
    return tally


def wilson(hits: int, total: int, z: float = 1.96) -> tuple[float, float, float]:
    """Share and its 95 % interval (Wilson), in percent."""
    if not total:
        return 0.0, 0.0, 0.0
    share = hits / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return 100 * share, 100 * max(0.0, middle - half), 100 * (middle + half)


def quantile(values: t.Sequence[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0
