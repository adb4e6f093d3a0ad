# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Which nodes are judged together: a pool is node class x NVLink domain policy x fabric, never the inventory."""
from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass

from .hardware import Hardware
from .model import Kind, Node, Rules


@dataclass(frozen=True)
class Member:
    """One host as the inventory knows it. ``domain``: its NVLink domain (a variable, not the rack)."""

    name: str
    node_class: str
    leaf: str = ""
    domain: str = ""
    fabric: str = ""


@dataclass(frozen=True)
class Pool:
    """One search. ``mnnvl``: run with NVLink between the nodes, or (False) with it switched off."""

    name: str
    hardware: Hardware
    nodes: tuple[Node, ...]
    rules: Rules
    mnnvl: bool = False


def pools_of(members: t.Iterable[Member], classes: t.Mapping[str, Hardware], rules: Rules | None = None) -> list[Pool]:
    """In a fixed order. A class that is not described is an error of the caller (KeyError names it)."""
    groups: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        groups.setdefault((member.node_class, member.fabric), []).append(member)
    pools: list[Pool] = []
    for (node_class, fabric), group in sorted(groups.items()):
        hardware, name = classes[node_class], "/".join(filter(None, (node_class, fabric)))
        if hardware.domain_nodes > 1:
            pools += _domains(name, hardware, group, rules or Rules())
        pools += _networks(name, hardware, group, rules or Rules())
    return pools


def _domains(name: str, hardware: Hardware, group: t.Sequence[Member], rules: Rules) -> list[Pool]:
    """One run inside each NVLink domain and one across them; the rails stay untested in both (facts 4.3)."""
    kinds: tuple[Kind, ...] = tuple(kind for kind in rules.kinds if kind != "rails")
    rules = dataclasses.replace(rules, kinds=kinds, rails=0, node_stage=False)
    domains: dict[str, list[Member]] = {}
    for member in group:
        domains.setdefault(member.domain, []).append(member)
    pools = [Pool(f"{name}/nvlink {domain}", hardware, tuple(Node(one.name) for one in inside), rules, True)
             for domain, inside in sorted(domains.items()) if domain and len(inside) > 1]
    known = [member for member in group if member.domain]
    if len({member.domain for member in known}) > 1:
        # A domain is what a leaf is elsewhere: the group inside of which no shared path is used.
        nodes = tuple(Node(one.name, one.domain) for one in known)
        pools.append(Pool(f"{name}/across nvlink", hardware, nodes, rules, True))
    return pools


def _networks(name: str, hardware: Hardware, group: t.Sequence[Member], rules: Rules) -> list[Pool]:
    nodes = tuple(Node(member.name, member.leaf) for member in group)
    if not hardware.gpus_per_node:
        # perftest knows pairs only, and a node alone has nothing to measure.
        rules = dataclasses.replace(rules, kinds=(), rails=0, node_stage=False)
        return [Pool(f"{name}/perftest", hardware, nodes, rules)]
    rules = dataclasses.replace(rules, rails=hardware.nics)
    if not hardware.nics:
        return [Pool(f"{name}/{node.name}", hardware, (node,), rules) for node in nodes]
    return [Pool(f"{name}/network", hardware, nodes, rules)]
