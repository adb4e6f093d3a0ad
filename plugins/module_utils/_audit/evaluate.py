# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The evaluator of the rules: each different rail once, then hosts, then hosts against each other. Pure, linear."""
from __future__ import annotations

import operator
import typing as t
from collections import Counter

from . import rules, rules_fleet, rules_qos
from .compare import Spot, uniform, unique
from .expect import HostWant, Want
from .facts import Host, Place, Rail
from .group import Issue
from .model import Check, Rule

RAIL_RULES = (*rules.PORT_RULES, *rules_qos.QOS_RULES)
ALL_RULES = (*RAIL_RULES, *rules_fleet.HOST_RULES, *rules_fleet.FLEET_RULES)
Values = t.Mapping[str, t.Any]
_COMPARE: dict[str, t.Callable[[t.Any, t.Any], bool]] = {
    "is": operator.eq, "at-least": operator.ge, "at-most": operator.le}


def holds(check: Check, values: Values) -> bool | None:
    """None: it cannot be told, as a side is not known."""
    name, how, wanted = check
    have = values[name]
    if how == "none":
        return not have
    if how == "some":
        return bool(have)
    if isinstance(wanted, str) and wanted.startswith("@"):
        wanted = values[wanted[1:]]
    return None if have is None or wanted is None else _COMPARE[how](have, wanted)


class Verdict(t.NamedTuple):
    """Of one different rail: rules that speak with their words, and rules for which something was not known."""

    broken: tuple[tuple[Rule, str, str], ...]
    ids: frozenset[str]


def judge(table: t.Sequence[Rule], values: Values, broken: t.Collection[str] = ()) -> Verdict:
    """A rule keeps silent where another one of ``unless`` has spoken of the same place."""
    ids = set(broken)
    failed = []
    for rule in table:
        if all(holds(condition, values) for condition in rule.when) and holds(rule.check, values) is False:
            ids.add(rule.id)
            failed.append(rule)
    kept = [rule for rule in failed if not ids.intersection(rule.unless)]
    return Verdict(tuple((rule, rule.got.format_map(values), rule.wanted.format_map(values)) for rule in kept),
                   frozenset(ids))


def named(facts: Rail | Host, want: Want, **more: t.Any) -> dict[str, t.Any]:
    return {**facts._asdict(), **{f"want_{name}": value for name, value in want._asdict().items()}, **more}


class Audit:
    """One audit of a fleet. ``looked`` counts judged rails, for the test of its growth."""

    def __init__(self, wants: t.Sequence[HostWant], hosts: t.Mapping[str, Host]) -> None:
        self.wants, self.hosts = wants, hosts
        self.known: dict[tuple[Rail, int], Verdict] = {}
        self.looked = 0
        self.issues: list[Issue] = []
        self.broken: dict[tuple[str, int], set[str]] = {}
        self.members = Counter(want.pool for want in wants)

    def run(self) -> list[Issue]:
        for want in self.wants:
            host = self.hosts[want.name]
            self._host(want, host)
            for place, rail in zip(host.places, want.rails):
                self._rail(want, place, rail.want, rail.pci)
        spots = list(self._spots())
        self.looked += len(spots)
        for rule in rules_fleet.FLEET_RULES:
            if rule.scope in ("unique", "uniform"):
                found = (unique if rule.scope == "unique" else uniform)(rule, spots)
                self._take(found)
        for rule in rules_fleet.FLEET_RULES:
            if rule.scope == "path":
                self._paths(rule)
        allowed = {want.name: want.allow for want in self.wants if want.allow}
        return [one for one in self.issues if one.host is None or one.rule.id not in allowed.get(one.host, ())]

    def _host(self, want: HostWant, host: Host) -> None:
        values = named(host, want.want, want_neighbours=self.members[want.pool] > 1 and bool(want.rails))
        for rule, got, wanted in judge(_HOST_TABLE, values).broken:
            detail = host.why if rule.id == "record-missing" else ""
            self.issues.append(Issue(rule, want.pool, want.name, None, got, wanted, detail))

    def _rail(self, want: HostWant, place: Place, wanted: Want, pci: str) -> None:
        self.looked += 1
        key = (place.facts, place.key)
        verdict = self.known.get(key)
        if verdict is None:
            verdict = self.known[key] = judge(RAIL_RULES, named(place.facts, wanted))
        if verdict.ids:
            self.broken[want.name, place.rail] = set(verdict.ids)
            for rule, got, words in verdict.broken:
                self.issues.append(Issue(rule, want.pool, want.name, place.rail, got, words, _detail(rule, place, pci)))

    def _spots(self) -> t.Iterator[Spot]:
        for want in self.wants:
            host = self.hosts[want.name]
            if not host.record:
                continue
            for place, rail in zip(host.places, want.rails):
                yield Spot(want.pool, want.name, host, place, rail.want,
                           self.broken.get((want.name, place.rail), frozenset()))
            if not host.places:
                yield Spot(want.pool, want.name, host, None, want.want, frozenset())

    def _take(self, found: t.Iterable[Issue]) -> None:
        for one in found:
            self.issues.append(one)
            if one.host is not None and one.rail is not None:
                self.broken.setdefault((one.host, one.rail), set()).add(one.rule.id)

    def _paths(self, rule: Rule) -> None:
        """A path has two ends, and what is known to be wrong with either explains it."""
        spoken: set[tuple[str, str, int]] = set()
        for want in self.wants:
            for path in self.hosts[want.name].paths:
                name, how, wanted = rule.check
                if holds((name, how, path.size if wanted == "size" else wanted), path._asdict()) is not False:
                    continue
                if rule.id == "path-mtu" and not path.largest:
                    continue
                known = self.broken.get((want.name, path.rail), set()) | self.broken.get((path.peer, path.rail), set())
                ends = (*sorted((want.name, path.peer)), path.rail)
                if known.intersection(rule.unless) or ends in spoken:
                    continue
                spoken.add(t.cast("tuple[str, str, int]", ends))
                words = path._asdict()
                detail = f"to {path.peer}{': ' + path.reason if path.reason else ''}"
                self.issues.append(Issue(rule, want.pool, want.name, path.rail, rule.got.format_map(words),
                                         rule.wanted.format_map(words), detail))


_HOST_TABLE = (*rules_fleet.HOST_RULES, *(rule for rule in rules_fleet.FLEET_RULES if rule.scope == "host"))


def _detail(rule: Rule, place: Place, pci: str) -> str:
    """What differs from host to host and so is no part of the finding's words."""
    if rule.id.startswith("address"):
        return f"{place.netdev} has {', '.join(place.addresses) or 'no address'}"
    return place.netdev or pci
