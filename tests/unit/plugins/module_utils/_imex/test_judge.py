# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import judge
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import (
    CONNECTED,
    MAP_MISMATCH,
    VERSION_MISMATCH,
    Domain,
    Member,
)

NODES = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
WHOLE = Domain({index: Member(node, "READY", "580.126.09") for index, node in enumerate(NODES)},
               {(one, other): CONNECTED for one in range(3) for other in range(3)}, "UP")


def got(domain: Domain, nodes: t.Sequence[str] = NODES, version: str | None = "580.126.09") -> list[str]:
    return [f"{one.object}: {one.got}" for one in judge.problems(domain, nodes, version)]


def member(index: int, **values: t.Any) -> Domain:
    return dataclasses.replace(WHOLE, members={**WHOLE.members, index: dataclasses.replace(
        WHOLE.members[index], **values)})


def link(word: str | None, *ends: tuple[int, int]) -> Domain:
    links = {**WHOLE.links, **dict.fromkeys(ends, word)}
    return dataclasses.replace(WHOLE, links={key: word for key, word in links.items() if word is not None})


def test_a_whole_domain() -> None:
    assert got(WHOLE) == [] and not judge.is_permanent(WHOLE)
    assert got(member(1, version="580.126")) == [], "two parts are the same version"
    assert got(member(1, version=None), version=None) == [], "an older build tells none"
    one = Domain({0: Member("2001:DB8::1", "READY", "580.126.09")}, {(0, 0): CONNECTED}, "UP")
    assert got(one, ["2001:db8::1"]) == []


@pytest.mark.parametrize(("domain", "expected"), [
    (member(1, address="192.0.2.9"), ["nodes of the domain: no 192.0.2.2", "nodes of the domain: also 192.0.2.9"]),
    (member(1, address="192.0.2.1"), ["nodes of the domain: no 192.0.2.2",
                                      "nodes of the domain: 192.0.2.1 more than once"]),
    (member(1, version="580.95.05"), ["node 192.0.2.2: IMEX 580.95.05"]),
    (member(1, version="580.95"), ["node 192.0.2.2: IMEX 580.95"]),
    (member(1, status="WAITING_FOR_PEERS"), ["node 192.0.2.2: WAITING_FOR_PEERS"]),
    (dataclasses.replace(WHOLE, state="DEGRADED"), ["state of the domain: DEGRADED"]),
    (link("recovering", (0, 1)), ["links 192.0.2.1 to 192.0.2.2: recovering"]),
    (link(None, (2, 1)), ["links 192.0.2.3 to 192.0.2.2: not in the table"]),
    (link(None, (1, 1)), ["links 192.0.2.2 to 192.0.2.2: not in the table"]),
    (link(MAP_MISMATCH, (0, 1), (1, 0), (1, 2), (2, 1)), [
        "links 192.0.2.1 to 192.0.2.2, 192.0.2.2 to 192.0.2.1, 192.0.2.2 to 192.0.2.3 and 1 more: " + MAP_MISMATCH])])
def test_what_is_not_whole(domain: Domain, expected: list[str]) -> None:
    assert got(domain) == expected


def test_one_direction_is_not_both() -> None:
    assert got(link("disconnected", (1, 0))) == ["links 192.0.2.2 to 192.0.2.1: disconnected"]


def test_a_domain_of_one_is_not_the_domain_of_three() -> None:
    one = Domain({0: WHOLE.members[0]}, {(0, 0): CONNECTED}, "UP")
    assert got(one) == ["nodes of the domain: no 192.0.2.2, 192.0.2.3"]
    assert got(one, NODES[:1]) == []


def test_links_of_a_node_that_is_away_are_not_repeated() -> None:
    away = dataclasses.replace(member(2, status="UNAVAILABLE", version=""), state="DEGRADED", links={
        **WHOLE.links, (0, 2): "never connected", (1, 2): "never connected",
        **{(2, other): "invalid" for other in range(3)}})
    assert got(away) == ["node 192.0.2.3: UNAVAILABLE", "state of the domain: DEGRADED"]


@pytest.mark.parametrize("word", [MAP_MISMATCH, VERSION_MISMATCH])
def test_a_mismatch_is_permanent_and_says_what_to_do(word: str) -> None:
    (one,) = judge.problems(link(word, (0, 1)), NODES, None)
    assert judge.is_permanent(link(word, (0, 1))) and "stopped on all nodes of the domain" in one.hint
    (other,) = judge.problems(link("authenticating", (0, 1)), NODES, None)
    assert "stopped" not in other.hint and not judge.is_permanent(link("authenticating", (0, 1)))
