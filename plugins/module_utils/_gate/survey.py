# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Runs that look at every node alone (stage 0), at the pool as a whole (1, 5) and at parts of it (halves)."""
from __future__ import annotations

import statistics
import typing as t
from dataclasses import dataclass

from .case import Case, Step
from .match import by_leaf, shuffled
from .model import Conviction, Kind, Node, Stage
from .stats import CERTAIN_SYMPTOMS, FLAKY_CLEAR, Goal, Probe


@dataclass
class Survey:
    """What the whole-pool runs say: good, or which way to look for the cause."""

    good: bool = False
    untested: bool = False
    rails: bool = False
    flaky: bool = False
    # Only alltoall is slow: it alone uses every leaf-to-leaf path.
    paths: bool = False
    ratio: float | None = None
    text: str = ""


def each_node(case: Case) -> Step[None]:
    """Stage 0. A node that is slow or wrong all by itself needs no partner to be convicted."""
    rules = case.rules
    case.open_round("node", "each node by itself")
    probes = [Probe((name,)) for name in case.names()]
    yield from case.settle(probes, case.screen_goal(1, rules.suspect, rules.suspect), "node", "node", "single node")
    good = [probe for probe in probes if probe.state == "good"]
    case.untested.update({probe.nodes[0]: "no usable single-node run" for probe in probes if probe.state == "untested"})
    bad = [probe for probe in probes if probe.bad]
    tested = [probe for probe in probes if probe.state != "untested"]
    if len(tested) > 1 and len(good) < max(1, rules.fleet_share * len(tested)):
        _all_alike(case, tested, "single-node bandwidth")
        return
    # One that stays close to the limit is no case for this stage: the network stages run it again.
    case.good_medians = [statistics.median(probe.values["all"]) for probe in good]
    for probe in bad:
        probe.state = ""
    goal = Goal(rules.looks, rules.max_repeats, rules.suspect, rules.path)
    yield from case.settle(bad, goal, "node", "node", "slow by itself: repeat", True)
    case.good_medians = []
    _convict_alone(case, bad, len(tested))


def _convict_alone(case: Case, tried: t.Sequence[Probe], count: int) -> None:
    bad = [probe for probe in tried if probe.bad]
    if count > 1 and 2 * len(bad) > count:
        _all_alike(case, bad, "single-node bandwidth")
        return
    for probe in bad:
        text = f"{probe.nodes[0]} is {probe.symptom} by itself in {probe.count} runs: not the network"
        case.convicted.append(Conviction("node", probe.nodes, probe.symptom, evidence=[probe.evidence()], text=text))
    for probe in tried:
        if probe.state == "unsure":
            case.notes.append(f"{probe.nodes[0]}: single-node runs stay close to the limit in {probe.count} runs")


def _all_alike(case: Case, probes: t.Sequence[Probe], what: str) -> None:
    values = [statistics.median(probe.values["all"]) for probe in probes]
    middle = statistics.median(values)
    case.slow_band = middle >= case.rules.fail_fraction
    case.fleet_wide = (f"{what} is low on all nodes alike (median {middle:.2f} of the limit, {len(values)} tested): "
                       "look for a common cause (driver, image, MTU, switch setting, wrong limit); nobody is blamed")


def whole(case: Case, stage: Stage, nodes: t.Sequence[Node], text: str) -> Step[Survey]:
    """Stages 1 and 5: all nodes together, each kind until it is decided; a bad ring needs no alltoall."""
    names = tuple(node.name for node in nodes)
    case.open_round(stage, text)
    seen: dict[Kind, Probe] = {}
    for kind in case.rules.kinds:
        if (kind == "rails" and case.rules.rails < 2) or (kind == "alltoall" and _certain(seen)):
            continue
        seen[kind] = probe = Probe(names, rails=kind == "rails", only_rails=kind == "rails")
        goal = case.goal(case.rules.looks, case.rules.clear)
        yield from case.settle([probe], goal, stage, kind, f"all {len(names)} nodes: {kind}")
        if probe.bad and probe.symptom in CERTAIN_SYMPTOMS:
            break
    survey = _summary(seen)
    if survey.good and case.rules.flaky_repeats:
        yield from _hunt_flaky(case, survey, seen, stage, names)
    return survey


def _certain(seen: t.Mapping[Kind, Probe]) -> bool:
    return "ring" in seen and seen["ring"].bad


def _summary(seen: t.Mapping[Kind, Probe]) -> Survey:
    bad = [kind for kind, probe in seen.items() if probe.bad or probe.state == "unsure"]
    untested = [kind for kind, probe in seen.items() if probe.state == "untested"]
    values = [value for probe in seen.values() for value in probe.values.get("all", ())]
    survey = Survey(good=not bad and not untested, untested=not bad and bool(untested), rails="rails" in bad,
                    paths=bad == ["alltoall"], ratio=statistics.median(values) if values else None)
    if any(probe.bad and probe.symptom in CERTAIN_SYMPTOMS for probe in seen.values()):
        # It hides whatever else there is: let the pairs show the rails as well.
        survey.rails = True
    survey.text = ", ".join(f"{kind} {probe.state}" for kind, probe in seen.items())
    ring = seen.get("ring")
    if ring and ring.count and not all(value == 0.0 for value in ring.values["all"]):
        survey.flaky = comes_and_goes(ring.values["all"])
    return survey


def comes_and_goes(values: t.Sequence[float]) -> bool:
    """Two levels, both often: the median of such a series says nothing about the next run."""
    if len(values) < 3:
        return False
    low, high = min(values), max(values)
    middle = (low + high) / 2
    upper = sum(value > middle for value in values)
    return high - low > 0.10 * high and 0.25 <= upper / len(values) <= 0.75


def _hunt_flaky(case: Case, survey: Survey, seen: t.Mapping[Kind, Probe], stage: Stage,
                names: tuple[str, ...]) -> Step[None]:
    """The medians are good; look on until a fault in half of the runs would have shown."""
    pool = Probe(names)
    pool.values["all"] = [value for kind, probe in seen.items() if kind != "rails"
                          for value in probe.values["all"]]
    while len(pool.values["all"]) < case.rules.flaky_repeats:
        weight = case.scale().flaky(pool.values["all"])
        if weight <= -FLAKY_CLEAR:
            return
        if weight >= case.rules.clear or pool.missing > case.rules.retries:
            break
        yield from case.look([pool], stage, "ring", "does it come and go?")
    weight = case.scale().flaky(pool.values["all"])
    if weight > 0:
        low = sum(value < case.scale().threshold for value in pool.values["all"])
        survey.good, survey.flaky = False, True
        survey.text += f"; {low} of {len(pool.values['all'])} runs were low"
    elif pool.missing > case.rules.retries:
        survey.good, survey.untested = False, True


def halves(case: Case) -> Step[None]:
    """The whole is slow and no pair is: which part must be together for it to show? Blames no node."""
    nodes = case.rest()
    if len(nodes) < 4:
        case.scale_text = "the whole is slow, every pair is good; too few nodes to split"
        return
    case.open_round("halves", "two halves side by side")
    parts = _split(case, nodes)
    states = yield from _parts(case, parts)
    bad = [part for part, state in zip(parts, states) if state]
    if not bad:
        case.scale_text = ("the whole is slow, both halves pass: the cause needs the full load (spine, "
                           "oversubscription, incast, a path between the halves); no node is to blame")
        return
    if len(bad) == 1 and len(by_leaf(bad[0])) > 1:
        case.open_round("halves", "each leaf of the slow half by itself")
        leaves = _leaves(bad[0])
        states = yield from _parts(case, leaves)
        named = [part[0].leaf for part, state in zip(leaves, states) if state]
        if named:
            case.scale_text = f"slow only in larger groups, and under leaf {', '.join(named)}; no node is to blame"
            return
    where = "one half is" if len(bad) == 1 else "both halves are"
    case.scale_text = f"every pair is good, the whole and {where} slow: it needs a larger group; no node is to blame"


def _leaves(nodes: t.Sequence[Node]) -> list[list[Node]]:
    groups = [[node for node in nodes if node.leaf == leaf] for leaf in by_leaf(nodes)]
    return [group for group in groups if len(group) > 1]


def _split(case: Case, nodes: t.Sequence[Node]) -> list[list[Node]]:
    """Leaves are kept whole where there are several."""
    leaves = by_leaf(nodes)
    order = (shuffled(leaves, case.seed, "halves") if len(leaves) > 1
             else shuffled([node.name for node in nodes], case.seed, "halves"))
    first = set(order[:len(order) // 2])
    inside = [(node.leaf if len(leaves) > 1 else node.name) in first for node in nodes]
    parts = [[node for node, here in zip(nodes, inside) if here is side] for side in (True, False)]
    return [part for part in parts if len(part) > 1]


def _parts(case: Case, parts: t.Sequence[t.Sequence[Node]]) -> Step[list[bool]]:
    """Which of the parts are slow, in any kind of run."""
    slow = [False] * len(parts)
    for kind in case.rules.kinds:
        if kind == "rails":
            continue
        probes = [Probe(tuple(node.name for node in part)) for part in parts]
        goal = case.goal(case.rules.looks, case.rules.clear)
        yield from case.settle(probes, goal, "halves", kind, "part of the pool")
        slow = [before or probe.bad for before, probe in zip(slow, probes)]
    return slow
