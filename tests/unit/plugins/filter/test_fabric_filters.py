# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from datetime import datetime, timedelta, timezone

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter.fabric_batches import fabric_batches
from ansible_collections.aidc.gpu_cluster.plugins.filter.fabric_neighbours import fabric_neighbours
from ansible_collections.aidc.gpu_cluster.plugins.filter.path_findings import path_findings

CLASSES = {"one": ["a", "b"], "two": ["x", "y"]}


def record(number: int, hours: float = 0) -> dict[str, t.Any]:
    gid = {"family": "ipv4", "type": "RoCE v2", "ndev": "r0", "address": f"198.51.100.{number}"}
    port = {"netdev": "r0", "state": "ACTIVE", "mtu_bytes": 4200, "gids": [gid]}
    time = (datetime.now(timezone.utc) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"time": time, "data": {"devices": [{"rail": 0, "ports": [port]}]}}


RECORDS = {host: record(number) for number, host in enumerate("abxy", 1)}


def peers(found: dict[str, list[dict[str, t.Any]]]) -> dict[str, list[str]]:
    return {host: [target["peer"] for target in targets] for host, targets in found.items()}


def test_neighbours_are_of_one_class() -> None:
    assert peers(fabric_neighbours(RECORDS, "before", CLASSES, ["a", "y"])) == {"a": ["b"], "y": ["x"]}
    assert peers(fabric_neighbours(RECORDS, "after", CLASSES, ["a", "b", "x"])) == {"a": ["b"], "b": ["a"], "x": []}
    assert peers(fabric_neighbours(RECORDS, "after", CLASSES, ["x"], done=["y", "a"])) == {"x": ["y"]}
    answers = {"x": [{"rail": 0, "peer": "y", "largest_bytes": 4200}]}
    assert peers(fabric_neighbours(RECORDS, "after", CLASSES, ["x"], answers=answers)) == {"x": ["y"]}


def test_an_old_record_is_no_neighbour() -> None:
    records = {**RECORDS, "b": record(2, hours=25)}
    assert peers(fabric_neighbours(records, "before", CLASSES, ["a"])) == {"a": []}
    assert peers(fabric_neighbours(records, "before", CLASSES, ["a"], max_age_hours=26)) == {"a": ["b"]}
    assert peers(fabric_neighbours({**RECORDS, "b": {"time": "x"}}, "before", CLASSES, ["a"])) == {"a": []}


@pytest.mark.parametrize(("arguments", "message"), [
    (([], "before", CLASSES, []), "records: got list, wanted a mapping"),
    (({}, "before", [], []), "classes: got list"),
    (({}, "during", CLASSES, []), "got 'during', wanted before or after"),
])
def test_bad_neighbours(arguments: tuple[t.Any, ...], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        fabric_neighbours(*arguments)


def test_batches() -> None:
    assert fabric_batches(CLASSES, ["b"]) == {"b": "canary", "a": "rest", "x": "canary", "y": "rest"}


@pytest.mark.parametrize(("arguments", "message"), [
    ((["a"],), "got list, wanted a mapping of class to hosts"), (({"one": "abc"},), "one: got 'abc', wanted a list"),
    ((CLASSES, "a"), "canaries: got 'a'"), ((CLASSES, [], -1), "got per_class -1"),
    ((CLASSES, [], 1, 101), "percent 101"), ((CLASSES, [], "x"), "per_class 'x'"),
])
def test_bad_batches(arguments: tuple[t.Any, ...], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message.replace("[", r"\[")):
        fabric_batches(*arguments)


def test_bad_paths() -> None:
    with pytest.raises(AnsibleFilterError, match="path_findings: KeyError"):
        path_findings([{}], "a")
