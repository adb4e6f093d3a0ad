# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Stages 2 to 4: matchings find suspects, known-good partners convict them, per-rail runs name the rail."""
from __future__ import annotations

import dataclasses
import statistics
import typing as t
from dataclasses import dataclass, field

from .case import Case, Step
from .confirm import confirm
from .match import ROUND_ROBIN_NODES, Group, across, by_leaf, crossed, inside, round_robin, rounds_to_cover
from .model import Conviction
from .stats import Goal, Probe
from .survey import Survey

# If two matchings hold no good pair, two more (facts 4.3: with half of 8 nodes bad 5 % of clusters have none).
_EXTRA_MATCHINGS = 2


@dataclass
class Screen:
    """Stage 2: what the matchings have shown."""

    probes: list[Probe] = field(default_factory=list)
    tested: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)

    def take(self, case: Case, probes: t.Sequence[Probe]) -> None:
        for probe in probes:
            self.probes.append(probe)
            self.tried.update(probe.nodes)
            case.met.add(frozenset(probe.nodes))
            if probe.state != "untested":
                self.tested.update(probe.nodes)
                case.covered |= crossed(probe.nodes, case.leaf_of)
            if probe.state == "good":
                case.cleared.update(probe.nodes)
                case.good_medians.append(statistics.median(probe.values["all"]))

    @property
    def good(self) -> int:
        return sum(probe.state == "good" for probe in self.probes)

    def suspects(self, case: Case) -> list[str]:
        """Nodes without any good pair; those that never ran are not among them."""
        return [node.name for node in case.rest() if node.name in self.tested and node.name not in case.cleared]

    def slow_paths(self, case: Case) -> list[Probe]:
        """Slow pairs of nodes that are all sound with others."""
        known = case.slow_leaves()
        pairs = [probe for probe in self.probes if probe.bad and len(probe.nodes) == 2]
        return [probe for probe in pairs if case.cleared.issuperset(probe.nodes)
                and known.isdisjoint(crossed(probe.nodes, case.leaf_of))]

    def first_partners(self, case: Case, suspects: t.Collection[str]) -> dict[str, Probe]:
        """Where a suspect was slow with a node that is known to be good by now: one of the two it takes.

        Under its own leaf, if there is one: no path between leaves can be the reason then.
        """
        known = case.slow_leaves()
        found: dict[str, Probe] = {}
        for probe in self.probes:
            names = [name for name in probe.nodes if name in suspects]
            if len(probe.nodes) != 2 or len(names) != 1 or not probe.bad:
                continue
            paths = crossed(probe.nodes, case.leaf_of)
            partner = next(name for name in probe.nodes if name != names[0])
            if partner in case.cleared and known.isdisjoint(paths) and not (paths and names[0] in found):
                found[names[0]] = dataclasses.replace(probe, nodes=(names[0], partner))
        return found


def locate(case: Case, survey: Survey) -> Step[int]:
    """Find what makes the rest of the pool slow; how many new convictions."""
    before = len(case.convicted)
    case.cleared, case.good_medians, case.suspects, case.met = set(), [], {}, set()
    screen = Screen()
    yield from _matchings(case, screen, survey)
    missing = screen.tried - screen.tested
    case.untested.update({name: "no usable run with any partner" for name in missing})
    if not screen.tested or _common_cause(case, screen):
        return 0
    paths = yield from _decide_paths(case, screen, survey)
    suspects = screen.suspects(case)
    convicted = yield from confirm(case, suspects, screen.first_partners(case, set(suspects)), paths, survey)
    known = case.slow_leaves()
    case.convicted += [one for one in convicted if one.scope != "leaves" or known.isdisjoint([one.leaves])]
    if _too_many(case):
        case.convicted = case.convicted[:before]
        return 0
    yield from name_rails(case, case.convicted[before:])
    return len(case.convicted) - before


def _matchings(case: Case, screen: Screen, survey: Survey) -> Step[None]:
    nodes = case.rest()
    names = [node.name for node in nodes]
    if len(nodes) <= ROUND_ROBIN_NODES:
        for turn, groups in enumerate(round_robin(names)):
            yield from _matching(case, screen, survey, groups, f"every pair, {turn + 1}")
        return
    salt = f"loop {case.loop}"
    first: list[Group] = []
    if not survey.paths or rounds_to_cover(nodes) < 2:
        first = inside(nodes, case.seed, salt)
        yield from _matching(case, screen, survey, first, "matching inside the leaves")
    turns = max(1, min(rounds_to_cover(nodes), case.rules.path_rounds)) if survey.paths else 1
    turn = 0
    while turn < turns:
        groups = across(nodes, case.seed, salt, turn, first)
        yield from _matching(case, screen, survey, groups, f"matching across leaves, {turn + 1}")
        turn += 1
        if turn == turns:
            turns += _more(case, screen, turn, rounds_to_cover(nodes))


def _more(case: Case, screen: Screen, turn: int, cover: int) -> int:
    """One matching more: no good pair so far, or nothing found while leaf-to-leaf paths remain unused."""
    if screen.good == 0:
        return int(bool(screen.tested) and turn <= _EXTRA_MATCHINGS)
    nothing = not screen.suspects(case) and not screen.slow_paths(case)
    return int(nothing and turn < min(cover, case.rules.path_rounds))


def _matching(case: Case, screen: Screen, survey: Survey, groups: list[Group], text: str) -> Step[None]:
    case.open_round("pair", text)
    rules = case.rules
    probes = [Probe(group, rails=survey.rails) for group in groups]
    goal = case.screen_goal(rules.screen_repeats, rules.clear, rules.convict, survey.flaky)
    yield from case.settle(probes, goal, "pair", "pair", text)
    screen.take(case, probes)


def _common_cause(case: Case, screen: Screen) -> bool:
    """No good pair, or hardly any: the cause is common."""
    tested = [probe for probe in screen.probes if probe.state != "untested"]
    if screen.good >= max(1.0, case.rules.fleet_share * len(tested)):
        return False
    middle = statistics.median(statistics.median(probe.values["all"]) for probe in tested)
    case.slow_band = middle >= case.rules.fail_fraction
    if len(case.rest()) <= ROUND_ROBIN_NODES:
        case.suspects = {name: "no partner is known to be good" for name in case.names()}
    few = "no pair is" if screen.good == 0 else f"only {screen.good} of {len(tested)} pairs are"
    case.fleet_wide = (f"{few} good (median {middle:.2f} of the limit): the cause is common (switch, MTU, "
                       "configuration, image, limit) or cannot be told apart; nobody is blamed")
    return True


def _too_many(case: Case) -> bool:
    """Guilty by the dozen is a common cause that some nodes escape."""
    bad = {name for one in case.convicted if one.kind != "path" for name in one.nodes}
    if 2 * len(bad) <= len(case.nodes):
        return False
    case.fleet_wide = (f"{len(bad)} of {len(case.nodes)} nodes are slow with good partners: more than half, "
                       "so the cause is taken to be common; nobody is blamed")
    case.suspects = {name: "slow with known-good partners, like most of the pool" for name in sorted(bad)}
    return True


def _decide_paths(case: Case, screen: Screen, survey: Survey) -> Step[list[Probe]]:
    """Slow pairs of sound nodes, run on until the slowness is beyond doubt: repeats of the same matching."""
    paths = screen.slow_paths(case)
    for batch in _disjoint(paths):
        for probe in batch:
            probe.state = ""
        rules = case.rules
        goal = Goal(rules.looks, rules.max_repeats, rules.suspect, rules.path, survey.flaky)
        yield from case.settle(batch, goal, "pair", "pair", "sound with others, slow together: repeat", True)
    return [probe for probe in paths if probe.bad]


def _disjoint(probes: t.Sequence[Probe]) -> list[list[Probe]]:
    """Batches whose members share no node; two suffice nearly always (a node has one pair a matching)."""
    batches: list[tuple[set[str], list[Probe]]] = []
    for probe in probes:
        for used, batch in batches:
            if used.isdisjoint(probe.nodes):
                used.update(probe.nodes)
                batch.append(probe)
                break
        else:
            batches.append((set(probe.nodes), [probe]))
    return [batch for _nodes, batch in batches]


def name_rails(case: Case, convicted: t.Sequence[Conviction]) -> Step[None]:
    """Stage 4: with one good partner, each rail by itself. The verdict on the node stands whatever comes.

    Not for wrong data and hangs: a rail that hangs costs a time-out for each, and the log names it already.
    """
    targets = [one for one in convicted if one.kind == "node" and one.symptom not in ("wrong", "hang")]
    partners = _partners(case, targets)
    if case.rules.rails < 2 or not partners:
        return
    case.open_round("rail", "each rail of the convicted by itself")
    probes = {name: Probe((name, partner), rails=True) for name, partner in partners.items()}
    goal = Goal(case.rules.looks, 2 * case.rules.looks, case.rules.suspect, case.rules.suspect)
    yield from case.settle(list(probes.values()), goal, "rail", "pair", "which rail?")
    for one in targets:
        probe = probes.get(one.nodes[0])
        rails = _bad_rails(case, probe) if probe else ()
        if probe and 0 < len(rails) <= max(1, case.rules.rails // 2):
            one.kind, one.rails = "rail", rails
            one.evidence.append(probe.evidence())
            one.text += f"; rail {', '.join(map(str, rails))} explains it"


def _bad_rails(case: Case, probe: Probe) -> tuple[int, ...]:
    scale = case.scale()
    return tuple(sorted(rail for rail, values in probe.values.items()
                        if isinstance(rail, int) and scale.steady(values, True) >= case.rules.suspect))


def _partners(case: Case, targets: t.Sequence[Conviction]) -> dict[str, str]:
    """A good partner for each, under the same leaf if there is one."""
    free = [node for node in case.rest() if node.name in case.cleared]
    leaves = by_leaf(free)
    spare = [node.name for node in free]
    taken: set[str] = set()
    chosen: dict[str, str] = {}
    for one in targets:
        name = one.nodes[0]
        near = [other for other in leaves.get(case.leaf_of[name], ()) if other not in taken]
        far = near or [other for other in spare if other not in taken][:1]
        if far:
            chosen[name] = far[0]
            taken.add(far[0])
    return chosen
