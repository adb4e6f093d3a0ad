# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Hosts against each other: a value that all of a group must have, and one that nobody may have twice. Pure."""
from __future__ import annotations

import operator
import typing as t
from collections import Counter

from .expect import Want
from .facts import Host, Place
from .group import Issue, compress
from .model import Rule

_NOBODY = "nobody is blamed: no value has a majority"


class Spot(t.NamedTuple):
    """A rail of a host, or a host without rails (``place`` None)."""

    pool: str
    host: str
    facts: Host
    place: Place | None
    want: Want
    broken: t.AbstractSet[str]

    def group(self, by: str) -> tuple[t.Any, ...] | None:
        """Of what the value must be the same; None where the rail is in no group."""
        if by in ("host", "pool"):
            return (self.pool,)
        if self.place is None:
            return None
        if by == "rail":
            return (self.pool, self.place.rail)
        if by == "board":
            return (self.pool, self.place.board)
        return (self.pool, self.place.subnet) if self.place.subnet else None


def _getter(name: str) -> t.Callable[[Spot], t.Any]:
    """Found once for a rule, as it is asked of every rail of the fleet."""
    if name in Host._fields:
        return operator.attrgetter(f"facts.{name}")
    path = (f"want.{name[len('want_'):]}" if name.startswith("want_") else
            f"place.{name}" if name in Place._fields else f"place.facts.{name}")
    get = operator.attrgetter(path)
    return lambda spot: None if spot.place is None else get(spot)


def _issue(rule: Rule, spot: Spot, value: t.Any, wanted: str, by: str) -> Issue:
    place = spot.place if by not in ("host", "pool") else None
    return Issue(rule, spot.pool, spot.host, place.rail if place else None, rule.got.format(value=value), wanted,
                 place.netdev if place else "")


def uniform(rule: Rule, spots: t.Sequence[Spot]) -> t.Iterator[Issue]:
    """More than half of the hosts of a group have it right; where no value has that many, nobody is wrong."""
    name, by, _nothing = rule.check
    groups: dict[tuple[t.Any, ...], list[tuple[Spot, t.Any]]] = {}
    get = _getter(name)
    for spot in spots:
        value, key = get(spot), spot.group(by)
        if value is not None and key is not None and not (rule.unless and spot.broken
                                                          and not spot.broken.isdisjoint(rule.unless)):
            groups.setdefault(key, []).append((spot, value))
    for members in groups.values():
        count: Counter[t.Any] = Counter(value for _spot, value in members)
        if len(count) < 2:
            continue
        best, most = count.most_common(1)[0]
        if most * 2 <= len(members):
            yield _split(rule, members)
            continue
        wanted = rule.wanted.format(majority=f"{best}, as {most} of {len(members)}")
        yield from dict.fromkeys(_issue(rule, spot, value, wanted, by) for spot, value in members if value != best)


def _split(rule: Rule, members: t.Sequence[tuple[Spot, t.Any]]) -> Issue:
    hosts: dict[t.Any, list[str]] = {}
    for spot, value in members:
        names = hosts.setdefault(value, [])
        if not names or names[-1] != spot.host:
            names.append(spot.host)
    texts = sorted(f"{rule.got.format(value=value)}: {compress(sorted(set(names)))}" for value, names in hosts.items())
    return Issue(rule, members[0][0].pool, None, None, f"split: {'; '.join(texts)}", _NOBODY)


def _values(value: t.Any) -> t.Iterable[t.Any]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def unique(rule: Rule, spots: t.Sequence[Spot]) -> t.Iterator[Issue]:
    """All who have it are named, as each of them may be the wrong one. Ports of one bond share a MAC by design."""
    name, by, _nothing = rule.check
    first: dict[t.Any, Spot] = {}
    get = _getter(name)
    twice: dict[t.Any, dict[tuple[str, int | None], Spot]] = {}
    for spot in spots:
        for value in _values(get(spot)):
            other = first.setdefault(value, spot)
            if other is spot or (other.host == spot.host and (by == "host" or _bonded(other, spot))):
                continue
            users = twice.setdefault(value, {})
            for one in (other, spot):
                users.setdefault((one.host, one.place.rail if one.place is not None and by == "rail" else None), one)
    for value, users in twice.items():
        rails, pools = list({rail for _host, rail in users}), sorted({spot.pool for spot in users.values()})
        everybody = "; ".join(f"{host} rail {rail}" if rail is not None else host for host, rail in users)
        for spot in users.values():
            # One finding for one value, whoever has it.
            yield Issue(rule, " and ".join(pools), spot.host, rails[0] if len(rails) == 1 else None,
                        rule.got.format(value=value), rule.wanted, everybody)


def _bonded(one: Spot, other: Spot) -> bool:
    bonds = [spot.place.facts.bond if spot.place else None for spot in (one, other)]
    return bonds[0] is not None and bonds[0] == bonds[1]
