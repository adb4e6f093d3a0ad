# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is proposed for each host and for the fleet: class, rails, leaf, NVLink domain, numbers. Pure."""
from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from . import classify, rails
from .model import UNKNOWN, Host, NodeClass, Port


@dataclass(frozen=True)
class Proposal:
    """``leaf`` and ``nvlink_domain`` are names of ours; None where nothing tells."""

    host: Host
    node_class: NodeClass | None
    why: str
    rails: tuple[Port, ...] = ()
    findings: tuple[Problem, ...] = ()
    leaf: str | None = None
    nvlink_domain: str | None = None

    @property
    def group(self) -> str:
        return self.node_class.name if self.node_class else UNKNOWN

    @property
    def subnets(self) -> tuple[str, ...]:
        """Subnets in rail order; none unless every rail has one."""
        found = [rail.subnet for rail in self.rails if rail.subnet]
        return tuple(found) if len(found) == len(self.rails) else ()

    @property
    def node_index(self) -> int | None:
        """The number that the host has in all its subnets."""
        numbers = {rail.number for rail in self.rails}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def neighbours(self) -> tuple[str, ...]:
        found = [rail.neighbour for rail in self.rails if rail.neighbour]
        return tuple(found) if len(found) == len(self.rails) else ()


@dataclass(frozen=True)
class Fleet:
    """``leaves``: subnets in rail order by name, none where only LLDP told; ``domains``: UUID and clique by name."""

    proposals: tuple[Proposal, ...]
    leaves: dict[str, tuple[str, ...]] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)


def propose(host: Host, classes: t.Sequence[NodeClass]) -> Proposal:
    if host.error is not None:
        problem = Problem("host", host.error, "an answer", "look at SSH, the user and Python on it")
        return Proposal(host, None, "it did not answer", findings=(problem,))
    verdict = classify.classify(host, classes)
    if verdict.node_class is None:
        return Proposal(host, None, verdict.why, findings=(*verdict.findings, *host.findings))
    chosen, odd = rails.choose(host, verdict.node_class)
    return Proposal(host, verdict.node_class, verdict.why, chosen, (*verdict.findings, *odd, *host.findings))


def _same_leaf(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """A host with fewer rails has the first of its leaf's subnets."""
    length = min(len(one), len(other))
    return length > 0 and one[:length] == other[:length]


def _place(seen: list[tuple[str, ...]], mine: tuple[str, ...]) -> int:
    """Number of the leaf with these subnets (or switches), a new one if there is none yet."""
    for number, there in enumerate(seen):
        if _same_leaf(there, mine):
            if len(mine) > len(there):
                seen[number] = mine
            return number
    seen.append(mine)
    return len(seen) - 1


def _leaves(proposals: t.Sequence[Proposal]) -> tuple[list[str | None], dict[str, tuple[str, ...]]]:
    """A leaf is a set of subnets; without addresses the switches that LLDP names."""
    subnets: list[tuple[str, ...]] = []
    switches: list[tuple[str, ...]] = []
    where: list[tuple[str, int] | None] = []
    for one in proposals:
        if one.subnets:
            where.append(("subnets", _place(subnets, one.subnets)))
        elif one.neighbours:
            where.append(("switches", _place(switches, one.neighbours)))
        else:
            where.append(None)
    names = {place: f"leaf{number}" for number, place in enumerate(dict.fromkeys(filter(None, where)), 1)}
    values = {name: subnets[number] if kind == "subnets" else () for (kind, number), name in names.items()}
    return [names[place] if place else None for place in where], values


def fleet(hosts: t.Sequence[Host], classes: t.Sequence[NodeClass]) -> Fleet:
    proposals = [propose(host, classes) for host in hosts]
    leaves, subnets = _leaves(proposals)
    ids = dict.fromkeys(one.host.nvlink_domain for one in proposals if one.node_class and one.host.nvlink_domain)
    domains = {str(uuid): f"nvl{number}" for number, uuid in enumerate(ids, 1)}
    named = tuple(dataclasses.replace(one, leaf=leaf, nvlink_domain=domains.get(one.host.nvlink_domain or ""))
                  for one, leaf in zip(proposals, leaves))
    return Fleet(named, subnets, {name: uuid for uuid, name in domains.items()})
