# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Is the domain that nvidia-imex-ctl shows the one that is wanted, whole and connected? Pure.

Each word of the answer is checked [driver-slurm-k8s.md 1.8; NVIDIA/ai-cloud-validation#602]: a search for one good word
finds it in a domain of one node, too.
"""
from __future__ import annotations

import typing as t

from .._gpu.model import same_version
from .._host.errors import Problem
from .model import CONNECTED, MAP_MISMATCH, VERSION_MISMATCH, Domain, Member, plain_address, some

_SHOWN = 3
RESTART = ("permanent until IMEX is stopped on all nodes of the domain, has equal files there and is started again: "
           "role imex_domain, with -e imex_domain_restart=true if it finds nothing to change")


def _address(member: Member) -> str:
    return plain_address(member.address) or member.address


def _members(domain: Domain, nodes: t.Sequence[str]) -> list[Problem]:
    seen = [_address(one) for one in domain.members.values()]
    missing = [node for node in nodes if node not in seen]
    strange = sorted(set(seen) - set(nodes))
    twice = sorted({one for one in seen if seen.count(one) > 1})
    found = []
    if missing:
        found.append(Problem("nodes of the domain", f"no {some(missing, _SHOWN)}", f"all {len(nodes)} of the list",
                             "nvidia-imex-ctl reads the list of this node: is it older than the inventory?"))
    if strange:
        found.append(Problem("nodes of the domain", f"also {some(strange, _SHOWN)}", "only those of the inventory",
                             "a node that left, or of another domain"))
    if twice:
        found.append(Problem("nodes of the domain", f"{some(twice, _SHOWN)} more than once", "each once", ""))
    return found


def _statuses(domain: Domain) -> list[Problem]:
    return [Problem(f"node {_address(one)}", one.status, "READY",
                    "is it up, and does nvidia-imex.service run there?" if one.status == "UNAVAILABLE" else
                    "look at /var/log/nvidia-imex.log there")
            for _index, one in sorted(domain.members.items()) if one.status != "READY"]


def _versions(domain: Domain, version: str | None) -> list[Problem]:
    """A node that is not reached has none; its status says so. ``version`` is that of this node's driver."""
    known = [one for _index, one in sorted(domain.members.items()) if one.version]
    wanted = version or next((one.version for one in known), None)
    return [Problem(f"node {_address(one)}", f"IMEX {one.version}", f"{wanted}, as this node has",
                    "all nodes of a domain need the same driver and IMEX; see role nvidia_driver")
            for one in known if wanted and not same_version(str(one.version), wanted)]


def _links(domain: Domain) -> list[Problem]:
    """Every cell, in both directions. Cells of a node that is not READY follow from that, and are not repeated."""
    well = [index for index, one in domain.members.items() if one.status == "READY"]
    bad: dict[str, list[str]] = {}
    for source in sorted(well):
        for target in sorted(well):
            word = domain.links.get((source, target), "not in the table")
            if word != CONNECTED:
                ends = f"{_address(domain.members[source])} to {_address(domain.members[target])}"
                bad.setdefault(word, []).append(ends)
    hints = {MAP_MISMATCH: RESTART, VERSION_MISMATCH: f"one version of the driver on all nodes first; {RESTART}"}
    return [Problem(f"links {some(ends, _SHOWN)}", word, CONNECTED,
                    hints.get(word, "look at the network between the nodes"))
            for word, ends in bad.items()]


def problems(domain: Domain, nodes: t.Sequence[str], version: str | None) -> list[Problem]:
    found = [*_members(domain, nodes), *_statuses(domain), *_versions(domain, version), *_links(domain)]
    if domain.state != "UP":
        found.append(Problem("state of the domain", domain.state, "UP", "" if found else "nvidia-imex-ctl -N"))
    return found


def is_permanent(domain: Domain) -> bool:
    """Whether waiting can help no more."""
    return any(word in (MAP_MISMATCH, VERSION_MISMATCH) for word in domain.links.values())
