# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils._gate.model import Outcome, Rules
from plugins.module_utils._gate.stats import CLIP_BAD, CLIP_GOOD, Goal, Noise, Probe, Scale, decide

SCALE = Scale(0.90, 0.80, 0.03)
GOAL = Goal(3, 20, 7.0, 7.0)
FLAKY = Goal(3, 30, 7.0, 7.0, True)


def probe(*values: float | str) -> Probe:
    one = Probe(("a", "b"))
    for value in values:
        one.add(Outcome("ok", value) if isinstance(value, float) else Outcome(value))  # type: ignore[arg-type]
    return one


@pytest.mark.parametrize(("values", "state"), [
    ((0.96, 0.97), ""), ((0.96, 0.97, 0.95), "good"), ((0.86, 0.85, 0.86, 0.84), "bad"), ((0.86, 0.85, 0.86), ""),
    # One run that lost a fifth decides nothing.
    ((0.75, 0.96, 0.97, 0.95, 0.97), "good"), ((0.96, 0.97, 0.75), ""),
    (("hang", "hang"), "bad"), (("wrong",), ""), (("crash", 0.97), ""), (("none", "none", "none"), "untested"),
])
def test_decide(values: tuple[float | str, ...], state: str) -> None:
    assert decide(probe(*values), SCALE, GOAL, 2) == state


def test_used_up_runs_go_by_the_better_half() -> None:
    assert decide(probe(*[0.899, 0.901] * 10), SCALE, GOAL, 2) == "unsure"
    assert decide(probe(*[0.899, 0.903] * 10), SCALE, GOAL, 2) == "good"


def test_coming_and_going_is_seen_only_when_asked_for() -> None:
    values = [0.98, 0.5, 0.97, 0.5, 0.98, 0.97, 0.5, 0.5, 0.98, 0.5]
    assert decide(probe(*values), SCALE, FLAKY, 2) == "flaky"
    assert decide(probe(*values[:3]), SCALE, FLAKY, 2) == ""
    assert decide(probe(*[0.97] * 8), SCALE, FLAKY, 2) == ""
    assert decide(probe(*[0.97] * 9), SCALE, FLAKY, 2) == "good"


def test_rails_decide_each_for_itself() -> None:
    one = Probe(("a", "b"), rails=True)
    for _ in range(4):
        one.add(Outcome("ok", 0.93, {0: 0.97, 1: 0.5, 2: math.nan}))
    assert decide(one, SCALE, GOAL, 2) == "bad"
    assert one.worst == (1,)
    assert 2 not in one.values
    only = Probe(("a",), rails=True, only_rails=True)
    for _ in range(3):
        only.add(Outcome("ok", 0.5, {0: 0.97}))
    assert decide(only, SCALE, GOAL, 2) == "good"


def test_a_runner_that_stops_giving_rails_does_not_stop_the_search() -> None:
    one = Probe(("a", "b"), rails=True)
    one.add(Outcome("ok", 0.97, {0: 0.79}))
    state = ""
    for _ in range(30):
        one.add(Outcome("ok", 0.97))
        state = decide(one, SCALE, GOAL, 2)
        if state:
            break
    assert state


def test_missing_runs_end_the_series() -> None:
    one = probe(0.97, 0.91, 0.89, 0.9)
    for _ in range(3):
        one.add(Outcome("none"))
    assert decide(one, SCALE, GOAL, 2) in ("good", "unsure")


def test_symptoms() -> None:
    one = probe("hang", "hang")
    assert one.symptom == "hang"
    assert probe(0.8, 0.8, "wrong").symptom == "slow"
    one = probe(0.8)
    one.state = "flaky"
    assert one.symptom == "intermittent"
    assert one.evidence()["values"] == {"all": [0.8]}


def test_noise_is_estimated_from_neighbours_and_kept_within_bounds() -> None:
    rules = Rules()
    noise = Noise(rules)
    assert noise.sigma == pytest.approx(0.03)
    generator = random.Random(1)
    values = [1 + generator.gauss(0, 0.015) for _ in range(800)]
    for before, after in zip(values, values[1:]):
        noise.add(before, after)
    assert noise.sigma == pytest.approx(0.015, rel=0.1)
    quiet = Noise(rules)
    for _ in range(500):
        quiet.add(0.97, 0.97)
    assert quiet.sigma == rules.noise_floor
    wild = Noise(rules)
    for _ in range(500):
        wild.add(0.5, 1.0)
    assert wild.sigma <= rules.noise_ceiling
    wild.add(0.0, 1.0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.001, 1.2), min_size=1, max_size=40), st.floats(0.01, 0.06), st.booleans())
def test_balance_is_the_clipped_sum(values: list[float], sigma: float, rail: bool) -> None:
    scale = Scale(0.90, 0.80, sigma)
    line, margin = (0.80, 0.10) if rail else (0.90, 0.0275)
    plain = sum(min(CLIP_BAD, max(-CLIP_GOOD, 2 * margin / sigma ** 2 * (line - value))) for value in values)
    assert scale.steady(values, rail) == pytest.approx(plain)
    # A lower run never speaks for a node.
    assert scale.steady([*values[:-1], values[-1] / 2], rail) >= scale.steady(values, rail) - 1e-9


def test_false_alarms_of_one_series_are_as_rare_as_promised() -> None:
    generator = random.Random(5)
    bad = 0
    for _ in range(3000):
        one = Probe(("a", "b"))
        state = ""
        while not state:
            value = 0.93 * (1 + generator.gauss(0, 0.03)) * (0.8 if generator.random() < 0.05 else 1)
            one.add(Outcome("ok", value))
            state = decide(one, SCALE, GOAL, 2)
        bad += state == "bad"
    # The worst sound node, one series; two partners are needed to convict.
    assert bad < 30
