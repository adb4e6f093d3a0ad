# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Is a series of repeated ratios good or bad? Two sequential tests (Wald) that repeat only where it is close.

Steady: a likelihood ratio between "just sound" (threshold + margin) and "just bad" (threshold - margin), each
run's share clipped, because single runs of sound fabrics fall far out and one of them must not decide.
Flaky: how many runs are clearly low; a sound series has few, a fault that comes and goes has about half.
"""
from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import dataclass, field

from .model import Outcome, Rules, Symptom

# Half of the gap between a sound node (0.93 of the reference at least, facts 4.3's simulation) and a node that
# has lost 1 NIC of 8 (0.875), around a threshold of 0.90.
MARGIN = 0.0275
# A rail is judged alone: half rate or dead against sound, so the gap is wide.
RAIL_MARGIN = 0.10
# One run moves the balance by at most this. Sound fabrics lose a fifth in some 5 % of all runs, so a very low
# run is only about nine times likelier on a bad node; nothing sound or bad gives such runs upwards.
CLIP_BAD, CLIP_GOOD = 2.2, 3.5
# Wrong data, a crash or a hang is not noise: two of them decide.
CERTAIN = 7.0
CERTAIN_SYMPTOMS: tuple[Symptom, ...] = ("wrong", "hang", "crash")
# Share of low runs: sound fabric with 5 % outliers; fault that shows in about half of the runs.
_LOW_SOUND, _LOW_FLAKY = 0.08, 0.5
_LOW = math.log(_LOW_FLAKY / _LOW_SOUND)
_HIGH = math.log((1 - _LOW_FLAKY) / (1 - _LOW_SOUND))
# Nine clean runs in a row: a fault in half of the runs hides from them once in 512.
FLAKY_CLEAR = 5.4
FLAKY_BAD = 5.5
# Median of |difference of two runs| / standard deviation of one: 0.6745 * sqrt(2).
_MEDIAN_DIFFERENCE = 0.6745 * math.sqrt(2)
_PRIOR_WEIGHT = 10
_KEPT_DIFFERENCES = 4000

Measure = t.Union[str, int]  # "all" or the number of a rail
State = t.Literal["", "good", "bad", "flaky", "unsure", "untested"]


@dataclass(frozen=True)
class Scale:
    """What the ratios are measured with: the pass line and the noise of one run."""

    threshold: float
    rail_threshold: float
    noise: float

    def steady(self, values: t.Sequence[float], rail: bool = False) -> float:
        """Log likelihood ratio, bad over good. About 7 means an error of 1 in 1,000, 14 of 1 in a million."""
        line, margin = (self.rail_threshold, RAIL_MARGIN) if rail else (self.threshold, MARGIN)
        factor = 2 * margin / (self.noise * self.noise)
        if values and factor * (line - min(values)) <= -CLIP_GOOD:
            return -CLIP_GOOD * len(values)
        total = 0.0
        for value in values:
            share = factor * (line - value)
            if value == 0.0:
                total += CERTAIN
            elif share >= CLIP_BAD:
                total += CLIP_BAD
            else:
                total += share if share > -CLIP_GOOD else -CLIP_GOOD
        return total

    def flaky(self, values: t.Sequence[float], rail: bool = False) -> float:
        line = (self.rail_threshold if rail else self.threshold) - self.noise
        low = sum(value < line for value in values)
        return low * _LOW + (len(values) - low) * _HIGH


@dataclass(frozen=True)
class Goal:
    """When a series ends."""

    least: int
    most: int
    clear: float
    bad: float
    flaky: bool = False


@dataclass
class Probe:
    """A set of nodes that is measured again and again, and what came out."""

    nodes: tuple[str, ...]
    rails: bool = False
    # The rails are what was run: the bandwidth over all of them says nothing of its own.
    only_rails: bool = False
    values: dict[Measure, list[float]] = field(default_factory=dict)
    symptoms: list[str] = field(default_factory=list)
    missing: int = 0
    state: State = ""
    worst: tuple[Measure, ...] = ()

    def add(self, outcome: Outcome) -> None:
        value = outcome.value
        if value is None:
            self.missing += 1
            return
        self.symptoms.append(outcome.state)
        if value == 0.0 or not (self.only_rails and outcome.rails):
            self.values.setdefault("all", []).append(value)
        for rail, ratio in outcome.rails.items():
            if math.isfinite(ratio):
                self.values.setdefault(rail, []).append(ratio)

    @property
    def count(self) -> int:
        return len(self.symptoms)

    @property
    def bad(self) -> bool:
        return self.state in ("bad", "flaky")

    @property
    def symptom(self) -> Symptom:
        for state in CERTAIN_SYMPTOMS:
            if 2 * self.symptoms.count(state) >= self.count > 0:
                return state
        return "intermittent" if self.state == "flaky" else "slow"

    def evidence(self) -> dict[str, t.Any]:
        values = {str(key): [round(value, 4) for value in series] for key, series in self.values.items()
                  if key == "all" or key in self.worst}
        return {"nodes": list(self.nodes), "state": self.state, "symptom": self.symptom, "values": values,
                "missing": self.missing}


def decide(probe: Probe, scale: Scale, goal: Goal, retries: int) -> State:
    """The state of a probe after its newest run; empty means: run it again. Sets ``probe.worst``."""
    if probe.missing > retries and probe.count < goal.least:
        return "untested"
    least = 2 if probe.count and probe.values.get("all", []).count(0.0) == probe.count else goal.least
    if probe.count < least:
        return ""
    # Not by the length of a series: a runner may stop giving rails, and the search must still end.
    used_up = probe.count >= goal.most or probe.missing > retries
    if len(probe.values) == 1 and "all" in probe.values:
        probe.worst = ("all",)
        return _decide_one(probe.values["all"], scale, goal, False, used_up)
    states = {measure: _decide_one(values, scale, goal, measure != "all", used_up)
              for measure, values in probe.values.items()}
    for state in ("bad", "flaky", "unsure"):
        probe.worst = tuple(measure for measure, one in states.items() if one == state)
        if probe.worst:
            return t.cast(State, state)
    return "good" if all(state == "good" for state in states.values()) else ""


def _decide_one(values: list[float], scale: Scale, goal: Goal, rail: bool, used_up: bool) -> State:
    steady = scale.steady(values, rail)
    if steady >= goal.bad:
        return "bad"
    flaky = scale.flaky(values, rail) if goal.flaky else -FLAKY_CLEAR
    if goal.flaky and flaky >= min(goal.bad, FLAKY_BAD):
        return "flaky"
    if steady <= -goal.clear and flaky <= -FLAKY_CLEAR:
        return "good"
    if not used_up:
        return ""
    # The runs are used up and it is still close: the better half is good enough to go on with.
    return "good" if steady < 0 and (flaky < 0 or not goal.flaky) else "unsure"


@dataclass
class Noise:
    """Spread of repeated runs of the same nodes, from differences of neighbours: a slow node has the same."""

    rules: Rules
    differences: list[float] = field(default_factory=list)
    _sigma: float | None = None

    def add(self, before: float, after: float) -> None:
        if before > 0 and after > 0 and len(self.differences) < _KEPT_DIFFERENCES:
            self.differences.append(2 * abs(after - before) / (after + before))
            self._sigma = None

    @property
    def sigma(self) -> float:
        """Blended with the assumption as long as few runs were seen."""
        if self._sigma is None:
            self._sigma = self._estimate()
        return self._sigma

    def _estimate(self) -> float:
        prior, count = self.rules.prior_noise, len(self.differences)
        seen = statistics.median(self.differences) / _MEDIAN_DIFFERENCE if count else 0.0
        seen = min(seen, self.rules.noise_ceiling)
        blend = math.sqrt((_PRIOR_WEIGHT * prior ** 2 + count * seen ** 2) / (_PRIOR_WEIGHT + count))
        return min(max(blend, self.rules.noise_floor), self.rules.noise_ceiling)
