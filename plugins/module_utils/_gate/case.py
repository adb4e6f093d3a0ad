# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What one search knows so far, and the engine that repeats runs until each series is decided.

The stages are generators: they yield a list of runs and are sent the list of their outcomes. So a stage reads
like the procedure it is, and nothing but the order of outcomes is needed to continue it elsewhere.
"""
from __future__ import annotations

import statistics
import typing as t
from dataclasses import dataclass, field

from .match import LeafPair
from .model import Conviction, Kind, Node, Outcome, Rules, Run, Stage
from .stats import Goal, Noise, Probe, Scale, decide

T = t.TypeVar("T")
Step = t.Generator[list[Run], list[Outcome], T]


@dataclass
class Case:
    nodes: list[Node]
    rules: Rules
    seed: int
    noise: Noise
    leaf_of: dict[str, str]
    convicted: list[Conviction] = field(default_factory=list)
    suspects: dict[str, str] = field(default_factory=dict)
    untested: dict[str, str] = field(default_factory=dict)
    fleet_wide: str = ""
    scale_text: str = ""
    slow_band: bool = False
    verified: bool = False
    whole_good: bool = False
    # The whole-pool runs gave no usable result at first.
    no_result: bool = False
    notes: list[str] = field(default_factory=list)
    history: list[dict[str, t.Any]] = field(default_factory=list)
    # Names with a pair that was good, in this loop; medians of good pairs; slow pairs of sound ends.
    cleared: set[str] = field(default_factory=set)
    good_medians: list[float] = field(default_factory=list)
    covered: set[LeafPair] = field(default_factory=set)
    # Who ran with whom.
    met: set[frozenset[str]] = field(default_factory=set)
    loop: int = 0
    rounds: int = 0
    batches: int = 0
    runs: int = 0

    @classmethod
    def of(cls, nodes: t.Sequence[Node], rules: Rules, seed: int) -> Case:
        return cls(list(nodes), rules, seed, Noise(rules), {node.name: node.leaf for node in nodes})

    # -- who is left -------------------------------------------------------------------------------------------

    def rest(self) -> list[Node]:
        """The nodes still in the game: neither convicted nor out of reach."""
        out = {name for one in self.convicted if one.kind != "path" for name in one.nodes}
        return [node for node in self.nodes if node.name not in out and node.name not in self.untested]

    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.rest())

    def slow_leaves(self) -> set[LeafPair]:
        """Leaf-to-leaf paths that are known to be slow."""
        return {(one.leaves[0], one.leaves[1]) for one in self.convicted if one.scope == "leaves"}

    # -- how it is measured ------------------------------------------------------------------------------------

    def scale(self, relative: bool = False) -> Scale:
        """``relative``: for a conviction, also well below what the good pairs of this pool reach."""
        line = self.rules.pass_fraction
        if relative and self.good_medians:
            line = min(line, self.rules.relative * statistics.median(self.good_medians))
        return Scale(line, self.rules.fail_fraction, self.noise.sigma)

    def goal(self, least: int, bad: float, flaky: bool = False) -> Goal:
        rules = self.rules
        return Goal(least, rules.flaky_repeats if flaky else rules.max_repeats, rules.clear, bad, flaky)

    def screen_goal(self, least: int, clear: float, bad: float, flaky: bool = False) -> Goal:
        """Over many nodes at once somebody is always close: not too long, later stages look again."""
        rules = self.rules
        return Goal(least, rules.screen_most * (4 if flaky else 1), clear, bad, flaky)

    # -- runs --------------------------------------------------------------------------------------------------

    def open_round(self, stage: Stage, text: str) -> None:
        self.rounds += 1
        self.history.append({"round": self.rounds, "loop": self.loop, "stage": stage, "text": text,
                             "batches": 0, "runs": 0})

    def settle(self, probes: t.Sequence[Probe], goal: Goal, stage: Stage, kind: Kind, why: str,
               relative: bool = False) -> Step[None]:
        """Run all probes side by side, again and again, until each is decided. They must not share nodes."""
        pending = [probe for probe in probes if not probe.state]
        while pending:
            yield from self.look(pending, stage, kind, why)
            scale = self.scale(relative)
            for probe in pending:
                probe.state = decide(probe, scale, goal, self.rules.retries)
            pending = [probe for probe in pending if not probe.state]

    def look(self, probes: t.Sequence[Probe], stage: Stage, kind: Kind, why: str) -> Step[None]:
        """One run of each probe."""
        entry = self.history[-1]
        self.batches += 1
        entry["batches"] += 1
        entry["runs"] += len(probes)
        batch = [self._issue(probe, stage, kind, why, entry["batches"]) for probe in probes]
        outcomes = yield batch
        for probe, outcome in zip(probes, outcomes):
            probe.add(outcome)
            series = probe.values.get("all", ())
            if len(series) > 1:
                self.noise.add(series[-2], series[-1])

    def _issue(self, probe: Probe, stage: Stage, kind: Kind, why: str, repeat: int) -> Run:
        self.runs += 1
        return Run(f"{self.runs:06d}", stage, kind, probe.nodes, self.rounds, repeat, probe.rails, why)
