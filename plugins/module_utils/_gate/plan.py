# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The search for the culprit in one pool: asks for runs, is told outcomes, convicts on evidence. No I/O.

    planner = Planner([Node("n1", "leaf1"), ...], Rules(rails=8), seed=1)
    while runs := planner.next_runs():
        for run in runs:                      # they share no node and may go in parallel
            planner.record(run.id, outcome)   # in any order; planner.to_dict() may be stored at any time
    planner.conclusion()

The state is the list of outcomes: `from_dict` plays them again. The same seed and outcomes give the same search.
"""
from __future__ import annotations

import typing as t

from .case import Case, Step
from .locate import locate
from .model import Conclusion, Conviction, FinalVerdict, Node, Outcome, Rules, Run
from .survey import Survey, each_node, halves, whole

FORMAT = 1


class PlanError(Exception):
    """The planner was told something that does not fit what it asked for."""


class Planner:
    """One pool (node class x NVLink domain policy x fabric), see `pools`."""

    def __init__(self, nodes: t.Sequence[Node], rules: Rules | None = None, seed: int = 0, pool: str = "") -> None:
        names = [node.name for node in nodes]
        if len(set(names)) != len(names) or not all(names):
            raise PlanError("got node names that are empty or occur twice, wanted one entry for each node")
        self.pool, self.seed, self.rules = pool, seed, rules or Rules()
        self._nodes = list(nodes)
        self._case = Case.of(nodes, self.rules, seed)
        self._steps: Step[None] = _procedure(self._case)
        self._journal: list[tuple[str, Outcome]] = []
        self._batch: list[Run] = []
        self._outcomes: dict[str, Outcome] = {}
        self.done = False
        self._advance(None)

    def next_runs(self) -> list[Run]:
        """Runs that still have no outcome and may go now, all in parallel; empty at the end."""
        return [run for run in self._batch if run.id not in self._outcomes]

    def record(self, run_id: str, outcome: Outcome) -> None:
        if run_id in self._outcomes or all(run.id != run_id for run in self._batch):
            raise PlanError(f"got an outcome for run {run_id!r}, which is not open")
        self._take(run_id, outcome)

    def record_all(self, outcomes: t.Mapping[str, Outcome]) -> None:
        """The same for many runs at once."""
        unknown = set(outcomes) - {run.id for run in self.next_runs()}
        if unknown:
            raise PlanError(f"got outcomes for runs that are not open: {', '.join(sorted(unknown))}")
        for run_id, outcome in outcomes.items():
            self._take(run_id, outcome)

    def _take(self, run_id: str, outcome: Outcome) -> None:
        self._outcomes[run_id] = outcome
        if len(self._outcomes) == len(self._batch):
            ordered = [self._outcomes[run.id] for run in self._batch]
            self._journal += [(run.id, one) for run, one in zip(self._batch, ordered)]
            self._outcomes = {}
            self._advance(ordered)

    def _advance(self, outcomes: list[Outcome] | None) -> None:
        try:
            self._batch = next(self._steps) if outcomes is None else self._steps.send(outcomes)
        except StopIteration:
            self._batch, self.done = [], True

    def conclusion(self) -> Conclusion:
        """At any time; before the end the verdict is INCOMPLETE unless somebody is convicted."""
        return _conclude(self._case, self.done, self.pool)

    # -- saved and resumed -------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, t.Any]:
        journal = [*self._journal, *self._outcomes.items()]
        return {
            "format": FORMAT, "pool": self.pool, "seed": self.seed, "rules": self.rules.to_dict(),
            "nodes": [[node.name, node.leaf] for node in self._nodes],
            "outcomes": [[run_id, outcome.to_dict()] for run_id, outcome in journal],
        }

    @classmethod
    def from_dict(cls, data: t.Mapping[str, t.Any]) -> Planner:
        if data.get("format") != FORMAT:
            raise PlanError(f"got a saved search of format {data.get('format')!r}, wanted {FORMAT}: start a new one")
        nodes = [Node(name, leaf) for name, leaf in data["nodes"]]
        planner = cls(nodes, Rules.from_dict(data["rules"]), data["seed"], data["pool"])
        for run_id, outcome in data["outcomes"]:
            planner._replay(run_id, Outcome.from_dict(outcome))
        return planner

    def _replay(self, run_id: str, outcome: Outcome) -> None:
        """Like `record`, in constant time: the journal is in the order of the batches, save for the last."""
        position = len(self._outcomes)
        expected = self._batch[position].id if position < len(self._batch) else ""
        if run_id == expected:
            self._take(run_id, outcome)
        else:
            self.record(run_id, outcome)


def _procedure(case: Case) -> Step[None]:
    """Facts nccl-gate 4.3, stages 0 to 5."""
    if not case.nodes:
        return
    if case.rules.node_stage:
        yield from each_node(case)
    if case.fleet_wide or len(case.rest()) < 2:
        return
    survey: Survey | None = yield from _first_look(case)
    while survey and not survey.good and case.loop < case.rules.loops:
        case.loop += 1
        survey = yield from _search(case, survey)
    case.whole_good = survey is not None and survey.good


def _search(case: Case, survey: Survey) -> Step[Survey | None]:
    """Stages 2 to 5 once: what the rest looks like then; None when there is nothing left to do."""
    new = yield from locate(case, survey)
    if case.fleet_wide or len(case.rest()) < 2:
        return None
    if not case.rules.kinds:
        # No group runs to verify with: all pairs of the rest once more, until nobody new is found.
        case.verified = survey.good = new == 0
        return survey
    again, left_out = yield from _verify(case)
    if new and again.good and left_out.intersection(case.suspects):
        # Suspects at the end of a slow path that was left out: now that the worst is gone, once more.
        again.good, again.rails, again.flaky = False, survey.rails, survey.flaky
    elif new == 0 and again.untested:
        case.no_result = True
        return None
    elif new == 0 and not case.untested and not again.good:
        if survey.flaky or not case.rules.flaky_repeats or case.loop == case.rules.loops:
            yield from halves(case)
            return None
        # Pairs looked at two or three times show nothing: before it is laid on the scale, look longer.
        again.flaky = True
    return again


def _first_look(case: Case) -> Step[Survey]:
    """Stage 1, or, for a class without group runs, straight to the pairs."""
    if not case.rules.kinds:
        return Survey()
    survey = yield from whole(case, "whole", case.rest(), "all nodes together")
    case.verified = survey.good
    case.no_result = survey.untested
    return survey


def _verify(case: Case) -> Step[tuple[Survey, set[str]]]:
    """Stage 5: the rest without the convicted; for a slow path without one of its leaves, whose nodes are named."""
    nodes = case.rest()
    avoid = _one_side(case)
    kept = [node for node in nodes if node.name not in avoid and node.leaf not in avoid]
    left_out = {node.name for node in nodes}.difference(node.name for node in kept)
    if len(kept) < 2:
        case.notes.append("not verified: without the convicted paths fewer than two nodes are left")
        return Survey(good=True), left_out
    survey = yield from whole(case, "verify", kept, "all nodes without the convicted")
    if survey.good:
        case.verified = True
        if left_out:
            case.notes.append(f"{len(left_out)} nodes at one end of a slow path were left out of the verification")
    return survey, left_out


def _one_side(case: Case) -> set[str]:
    """Leaves (or nodes, for a path inside a leaf) that hold one end of every slow path: greedily the busiest."""
    ends = [set(one.leaves if one.scope == "leaves" else one.nodes) for one in case.convicted if one.kind == "path"]
    chosen: set[str] = set()
    doubtful = {*case.suspects, *(case.leaf_of[name] for name in case.suspects)}
    while ends:
        names = sorted({name for pair in ends for name in pair})
        # Of two that serve alike the one without suspects: the others are to be seen in the verification.
        busiest = max(names, key=lambda name: (sum(name in pair for pair in ends), name not in doubtful))
        chosen.add(busiest)
        ends = [pair for pair in ends if busiest not in pair]
    return chosen


def _conclude(case: Case, done: bool, pool: str) -> Conclusion:
    verdict, reason = _verdict(case, done)
    guilty = {name for one in case.convicted for name in one.nodes if one.kind != "path"}
    # A pair that was taken for a slow path before one of its ends was convicted.
    convicted = [one for one in case.convicted if one.scope != "pair" or guilty.isdisjoint(one.nodes)]
    suspects = [{"node": name, "reason": why} for name, why in sorted(case.suspects.items()) if name not in guilty]
    untested = [{"node": name, "what": why} for name, why in sorted(case.untested.items())]
    if len(case.nodes) == 1:
        untested.append({"node": case.nodes[0].name, "what": "network not tested: a pool of one node"})
    return Conclusion(
        verdict, reason, done, convicted, suspects, case.fleet_wide, case.scale_text, untested,
        case.verified and done, list(case.notes), pool, case.seed, round(case.noise.sigma, 4), case.rounds,
        case.batches, case.runs, case.loop, list(case.history))


def _verdict(case: Case, done: bool) -> tuple[FinalVerdict, str]:
    if case.convicted:
        return "FAIL", _guilty_text(case.convicted)
    if case.fleet_wide:
        return ("SLOW" if case.slow_band else "FAIL"), case.fleet_wide
    if not done:
        return "INCOMPLETE", "the search has not ended"
    if case.scale_text:
        return "FAIL", case.scale_text
    return _verdict_of_the_sound(case)


def _verdict_of_the_sound(case: Case) -> tuple[FinalVerdict, str]:
    """Nobody is convicted and no common cause is named."""
    if case.untested or len(case.nodes) < 2:
        why = f"{len(case.untested)} of {len(case.nodes)} nodes were not tested"
        return "INCOMPLETE", why if case.untested or not case.nodes else "network not tested: a pool of one node"
    if case.suspects:
        return "FAIL", "slow, and the cause could not be proven; see the suspects"
    if case.no_result:
        return "INCOMPLETE", "the runs of all nodes together gave no usable result"
    if not case.whole_good:
        return "FAIL", "slow, and nothing found within the loops allowed"
    if case.loop and case.rules.kinds:
        return "SLOW", "slow at first, good later, and no pair was slow: unstable; nobody is blamed"
    if case.rules.outliers_only:
        return "INCOMPLETE", "no outlier, but the limit is the pool's own median: it may be slow as a whole"
    return "PASS", f"all {len(case.nodes)} nodes pass alone and together"


def _guilty_text(convicted: t.Sequence[Conviction]) -> str:
    return "; ".join(one.text for one in convicted[:5]) + ("; ..." if len(convicted) > 5 else "")
