# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Stage 3: nobody is convicted who is not slow with two different partners known to be good.

Slow pairs whose ends are sound are checked in the same rounds, see `paths`.
"""
from __future__ import annotations

import itertools
import statistics
import typing as t
from collections import deque
from dataclasses import dataclass, field

from .case import Case, Step
from .match import Group, leaf_pair, shuffled
from .model import Conviction, Symptom
from .paths import PathCheck, verdicts
from .stats import CERTAIN_SYMPTOMS, Probe
from .survey import Survey

_PARTNERS = 2
# Two medians of the same loss, as a share of the limit: noise and the partners' own spread of 7 %.
_SAME_LOSS = 0.08


@dataclass
class Suspect:
    name: str
    runs: list[Probe] = field(default_factory=list)

    @property
    def partners(self) -> list[str]:
        return [probe.nodes[1] for probe in self.runs]

    def one_path(self, leaf_of: t.Mapping[str, str]) -> bool:
        """All partners are behind the same leaf-to-leaf path, which may be the slow thing."""
        leaves = {leaf_of[partner] for partner in self.partners}
        return len(leaves) == 1 and leaf_of[self.name] not in leaves

    def proven(self, case: Case) -> bool:
        """Slow with two partners whom no single other fault explains."""
        if len(self.runs) < _PARTNERS or self.one_path(case.leaf_of):
            return False
        if len({probe.symptom for probe in self.runs}.intersection(CERTAIN_SYMPTOMS)) == 1:
            return True
        rails = set.intersection(*(set(probe.worst) - {"all"} for probe in self.runs))
        line = case.scale(True).threshold
        # A node brings the same loss to each partner; a path and a bad partner together do not.
        if not rails and any(_depth(probe, line) >= line for probe in self.runs):
            return False
        losses = [(_depth(probe, line), case.leaf_of[probe.nodes[1]]) for probe in self.runs]
        own = case.leaf_of[self.name]
        return bool(rails) or any(abs(one - other) <= _SAME_LOSS and (leaf != another or leaf == own)
                                  for (one, leaf), (other, another) in itertools.combinations(losses, 2))

    def guilty(self, case: Case) -> bool:
        return self.name not in case.cleared and all(probe.bad for probe in self.runs) and self.proven(case)

    def open(self, case: Case) -> bool:
        """Slow with every partner so far, and that does not yet prove it."""
        if self.name in case.cleared or not all(probe.bad for probe in self.runs):
            return False
        return len(self.runs) <= _PARTNERS and not self.proven(case)

    def wishes(self, case: Case, leaves: t.Iterable[str]) -> list[str]:
        """Leaves to take the next partner from: first its own, then others; a third never from the same."""
        own, seen = case.leaf_of[self.name], [case.leaf_of[partner] for partner in self.partners]
        slow = case.slow_leaves()
        fresh = [leaf for leaf in leaves if leaf != own and leaf not in seen and leaf_pair(own, leaf) not in slow]
        if len(self.runs) == _PARTNERS:
            return [own, *fresh]
        again = [leaf for leaf in seen if leaf != own]
        return [*fresh, *again, own] if own in seen else [own, *fresh, *again]


def _depth(probe: Probe, line: float) -> float:
    """How deep its low runs are: the median of a fault that comes and goes says nothing."""
    values = probe.values["all"]
    return statistics.median([value for value in values if value < line] or values)


@dataclass
class Partners:
    """Nodes known to be good, each given away once a round."""

    leaves: dict[str, deque[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, names: t.Iterable[str], salt: str) -> Partners:
        pool = cls()
        for name in shuffled(names, case.seed, salt):
            pool.leaves.setdefault(case.leaf_of[name], deque()).append(name)
        return pool

    def take(self, wishes: t.Iterable[str], never: t.Collection[str]) -> str | None:
        for leaf in wishes:
            found = self._pop(leaf, never) if leaf in self.leaves else None
            if found:
                return found
        return None

    def _pop(self, leaf: str, never: t.Collection[str]) -> str | None:
        names = self.leaves[leaf]
        for _turn in range(len(names)):
            name = names.popleft()
            if name not in never:
                if not names:
                    del self.leaves[leaf]
                else:
                    # The next one asks another leaf first, so that no leaf is loaded by all suspects.
                    self.leaves[leaf] = self.leaves.pop(leaf)
                return name
            names.append(name)
        return None


def confirm(case: Case, names: t.Sequence[str], first: t.Mapping[str, Probe], paths: t.Sequence[Probe],
            survey: Survey) -> Step[list[Conviction]]:
    """``first``: what the matchings have shown of a suspect together with a good node."""
    suspects = [Suspect(name, [first[name]] if name in first else []) for name in names]
    checks = [PathCheck(probe) for probe in paths]
    stuck = False
    while not stuck and (any(one.open(case) for one in suspects) or not all(check.done for check in checks)):
        stuck = yield from _round(case, suspects, checks, survey)
    _name_the_rest(case, suspects)
    cleared = [probe for one in suspects if one.name in case.cleared for probe in one.runs if probe.state == "bad"]
    return [_convict(case, one) for one in suspects if one.guilty(case)] + verdicts(case, checks, cleared)


def _round(case: Case, suspects: t.Sequence[Suspect], checks: t.Sequence[PathCheck], survey: Survey) -> Step[bool]:
    """As many suspects as there are partners, side by side. True when nothing could be run."""
    salt = f"confirm {case.loop} {case.rounds}"
    pool = Partners.of(case, case.cleared, salt)
    probes: list[Probe] = []
    alone: list[str] = []
    for one in suspects:
        partner = None
        if one.open(case):
            partner = pool.take(one.wishes(case, list(pool.leaves)), one.partners)
            alone += [] if partner else [one.name]
        if partner:
            one.runs.append(Probe((one.name, partner), rails=survey.rails))
            probes.append(one.runs[-1])
    probes += [Probe(group, rails=survey.rails) for group in _mates(case, alone)]
    used = {name for probe in probes for name in probe.nodes}
    for check in checks:
        wanted = check.wants(case, used, survey.rails)
        used.update(name for probe in wanted for name in probe.nodes)
        probes += wanted
    if not probes:
        return True
    rules = case.rules
    case.open_round("confirm", "suspects with nodes known to be good")
    goal = case.goal(rules.looks, rules.convict, survey.flaky)
    yield from case.settle(probes, goal, "confirm", "pair", "suspect with a known-good partner", True)
    for probe in probes:
        if probe.state == "good":
            case.cleared.update(probe.nodes)
    return False


def _mates(case: Case, names: t.Sequence[str]) -> list[Group]:
    """Suspects of a leaf without any good node, all slow towards one other leaf: in pairs that have not met.

    A good pair shows that the path to the other leaf is slow, and makes partners for those that are left.
    """
    groups: list[Group] = []
    free = list(names)
    while free:
        first = free.pop(0)
        second = next((name for name in free if case.leaf_of[name] == case.leaf_of[first]
                       and frozenset((first, name)) not in case.met), None)
        if second:
            free.remove(second)
            case.met.add(frozenset((first, second)))
            groups.append((first, second))
    return groups


def _name_the_rest(case: Case, suspects: t.Sequence[Suspect]) -> None:
    """Suspicion that was neither proven nor cleared is reported, and drains nobody."""
    for one in suspects:
        last = one.runs[-1] if one.runs else None
        if last is None:
            case.suspects[one.name] = "slow with every partner; no node known to be good was free to test it with"
        elif one.name not in case.cleared and all(probe.bad for probe in one.runs) and not one.proven(case):
            names = " and ".join(one.partners)
            case.suspects[one.name] = (f"slow with {names}, but a slow path or partner could explain it; "
                                       "no further node known to be good was left to tell")
        elif last.state in ("unsure", "untested"):
            case.suspects[one.name] = f"stays close to the limit with {last.nodes[1]}" if last.state == "unsure" else (
                f"no usable run with {last.nodes[1]}")


def _convict(case: Case, one: Suspect) -> Conviction:
    symptoms = [probe.symptom for probe in one.runs]
    order: tuple[Symptom, ...] = ("wrong", "hang", "crash", "intermittent", "slow")
    symptom = next(each for each in order if each in symptoms)
    worst = set.intersection(*(set(probe.worst) for probe in one.runs))
    both = sorted(rail for rail in worst if isinstance(rail, int))
    by_rail = bool(both) and len(both) <= max(1, case.rules.rails // 2)
    middle = [statistics.median(probe.values["all"]) for probe in one.runs]
    text = (f"{one.name} is {symptom} with {' and '.join(one.partners)}, which are good with others "
            f"(medians {', '.join(f'{value:.2f}' for value in middle)} of the limit)")
    if by_rail:
        text += f"; rail {', '.join(map(str, both))} explains it"
    return Conviction("rail" if by_rail else "node", (one.name,), symptom, tuple(both) if by_rail else (),
                      evidence=[probe.evidence() for probe in one.runs], text=text)
