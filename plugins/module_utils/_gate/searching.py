# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The loop around the planner: ask it, have it run, tell it, keep what is known. The caller brings the hosts.

A batch of runs is stored before the next one starts, so a controller that is killed loses one batch at most.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import document, search
from .model import Run
from .plan import PlanError, Planner
from .search import Answers, Launch, Setting

POLICIES = ("on_failure", "always", "never")
# How a whole run can end that says something about who is in the way. All else says that it was not tested.
AFTER_FAILURE = ("SLOW", "WRONG", "CRASH")
# Also when asked for. In the lab sound pairs overran their time beside a launch that hung, and it is not known why: a
# search after a hang could name a sound host.
WHEN_ASKED = (*AFTER_FAILURE, "HANG", "PASS")
_NAMED = 6


def wanted(policy: str, state: str | None) -> bool:
    """``state``: of the whole-pool run; None when there was none."""
    if policy == "never" or state is None:
        return False
    return state in (WHEN_ASKED if policy == "always" else AFTER_FAILURE)


class Stopped(Exception):
    """The hosts cannot be asked any more; the message says why."""


@dataclass
class Searching:
    """``execute`` runs launches on the pool's head and gives the answers by id, or raises `Stopped`."""

    setting: Setting
    planner: Planner
    execute: t.Callable[[list[Launch]], Answers]
    say: t.Callable[[str], None]
    keep: t.Callable[[dict[str, t.Any]], None]
    simulated: bool = False
    # True once the time for the search is over.
    over: t.Callable[[], bool] = lambda: False
    launched: int = 0
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        while runs := self.planner.next_runs():
            if self.over():
                self.notes.append("the search was ended by its time limit")
                return
            try:
                self._batch(runs)
            except Stopped as stopped:
                self.notes.append(f"the search was ended: {stopped}")
                return
            self.keep(self.case())

    def _batch(self, runs: list[Run]) -> None:
        asked = {run.id: search.launches(self.setting, run) for run in runs}
        wanted_launches = [launch for parts in asked.values() for launch in parts]
        self.launched += len(wanted_launches)
        self.say(self._progress(runs, len(wanted_launches)))
        answers = self.execute(wanted_launches)
        for run in runs:
            mine = {part["id"]: answers[part["id"]] for part in asked[run.id] if part["id"] in answers}
            self.planner.record(run.id, search.outcome(run, mine))
            self.notes += [left for answer in mine.values() for left in answer.get("left") or []]

    def _progress(self, runs: list[Run], launches: int) -> str:
        known = self.planner.conclusion()
        first = runs[0]
        suspects = [one["node"] for one in known.suspects]
        convicted = sorted({name for one in known.convicted for name in one.nodes})
        words = [f"{self.setting.pool}: round {first.round}, {first.stage}: {first.why}",
                 f"{len(runs)} of {known.runs} runs, {launches} launches"]
        words += [f"{label} {', '.join(names[:_NAMED])}" for label, names in (
            ("convicted", convicted), ("suspects", suspects)) if names]
        return "; ".join(words)

    def case(self) -> dict[str, t.Any]:
        """The search in the form of `document.of_case`, with what a resumed one is compared by."""
        limit = self.setting
        limits = [_limit("all rails", limit.min_busbw_gbps, limit.rules.pass_fraction)]
        if limit.rules.rails > 1:
            limits.append(_limit("each rail alone", limit.min_busbw_gbps / limit.rules.rails,
                                 limit.rules.fail_fraction))
        return document.case(self.planner, self.simulated, limits=limits, fingerprint=self.setting.fingerprint(),
                             done=self.planner.done, notes=list(self.notes))


def _limit(what: str, busbw: float, fraction: float) -> dict[str, t.Any]:
    return {"what": what, "reason": "stated by the operator",
            "limit": {"busbw_gbps": busbw, "rule": "limit given by the operator",
                      "inputs": {"min_busbw_gbps": busbw}, "pass_fraction": fraction}}


def resumed(stored: t.Mapping[str, t.Any] | None, setting: Setting, age: float, max_age: float) -> Planner | None:
    """The planner of a search that was cut short, if it asked the same and is not too old."""
    if stored is None or stored.get("done") or stored.get("fingerprint") != setting.fingerprint():
        return None
    if not 0 <= age <= max_age:
        return None
    try:
        planner = Planner.from_dict(stored["search"])
    except (PlanError, KeyError, TypeError, ValueError):
        return None
    return None if planner.done else planner
