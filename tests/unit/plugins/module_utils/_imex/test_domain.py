# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import domain

HOSTS = ["a", "b", "c"]


def read(restart: bool = False, join: bool = False, owner: str = "host") -> dict[str, t.Any]:
    return {"restart_required": restart, "join_required": join, "owner": owner, "running": not join, "deferred": []}


FINE, OLD, NEW = read(), read(restart=True), read(join=True)
HELD = {"running": True, "deferred": [{"holder": "pid 7 x", "why": "has a channel open"}]}
IDLE: dict[str, t.Any] = {"running": False, "deferred": []}
FAILED = {"failed": True, "msg": "no"}


def decide(reads: t.Sequence[t.Any], batch: t.Sequence[str] = HOSTS, users: t.Sequence[t.Any] | None = None,
           stops: t.Sequence[t.Any] | None = None, restart: bool = False) -> dict[str, t.Any]:
    def by(answers: t.Sequence[t.Any] | None) -> dict[str, t.Any] | None:
        return None if answers is None else {host: one for host, one in zip(HOSTS, answers) if one is not None}

    return domain.decide("d", HOSTS, batch, by(reads) or {}, by(users), by(stops), restart)


# -- the inventory --------------------------------------------------------------------------------------------------


def test_domains_are_of_all_hosts_in_their_order() -> None:
    found = domain.domains({
        "z": {"nvlink_domain": "one", "ansible_host": "192.0.2.9"}, "x": {"ansible_host": "192.0.2.7"},
        "192.0.2.8": {"nvlink_domain": "two"}, "y": {"nvlink_domain": "", "ansible_host": "192.0.2.6"},
        "b": {"nvlink_domain": "one", "ansible_host": "b.example", "imex_domain_address": "2001:DB8::1"}})
    assert found == {"one": {"hosts": ["z", "b"], "nodes": ["192.0.2.9", "2001:db8::1"], "problems": []},
                     "two": {"hosts": ["192.0.2.8"], "nodes": ["192.0.2.8"], "problems": []}}


def problems(**second: t.Any) -> list[str]:
    hosts = {"a": {"nvlink_domain": "d", "ansible_host": "192.0.2.1"},
             "b": {"nvlink_domain": "d", "ansible_host": "192.0.2.2", **second}}
    found: list[str] = domain.domains(hosts)["d"]["problems"]
    return found


@pytest.mark.parametrize(("values", "words"), [
    ({"ansible_host": "b.example"}, "b: imex_domain_address: got 'b.example'"),
    ({"ansible_host": None}, "b: imex_domain_address: got 'b'"),
    ({"ansible_host": "192.0.2.1"}, "a, b: imex_domain_address: got 192.0.2.1 for each"),
    ({"node_class_nvlink_domain_trays": 0}, "b: nvlink_domain: got d, wanted none"),
    ({"node_class_nvlink_domain_trays": "1"}, "nvlink_domain d: got 2 hosts, wanted at most 1"),
    ({"imex_domain_owner": "dra"}, "imex_domain_owner: got host on a; dra on b; wanted one owner")])
def test_what_is_wrong_in_an_inventory(values: dict[str, t.Any], words: str) -> None:
    (found,) = problems(**values)
    assert words in found


@pytest.mark.parametrize("values", [
    {}, {"node_class_nvlink_domain_trays": 18}, {"node_class_nvlink_domain_trays": "CHANGEME"},
    {"imex_domain_owner": "host"}, {"imex_domain_owner": ""}])
def test_what_is_right_in_an_inventory(values: dict[str, t.Any]) -> None:
    assert problems(**values) == []


def test_a_domain_of_the_dra_driver_needs_no_addresses() -> None:
    hosts = {host: {"nvlink_domain": "d", "imex_domain_owner": "dra"} for host in HOSTS}
    assert domain.domains(hosts)["d"]["problems"] == []
    hosts["a"]["node_class_nvlink_domain_trays"] = "2"
    assert len(domain.domains(hosts)["d"]["problems"]) == 1


# -- the decision ---------------------------------------------------------------------------------------------------


def test_nothing_to_do_needs_nobody_else() -> None:
    assert decide([FINE, FINE, FINE])["action"] == "none"
    assert decide([FINE, None, None], ["a"])["action"] == "none"
    assert decide([FINE, FAILED, FINE])["action"] == "none"


@pytest.mark.parametrize("reads", [[FINE, NEW, FINE], [NEW, NEW, NEW]])
def test_join(reads: list[t.Any]) -> None:
    assert decide(reads)["action"] == "join"


@pytest.mark.parametrize("change", [OLD, NEW])
@pytest.mark.parametrize(("other", "batch"), [(None, ["a", "b"]), (FAILED, HOSTS), (FINE, ["a", "b"]), (None, HOSTS)])
def test_a_change_without_all_hosts(change: t.Any, other: t.Any, batch: list[str]) -> None:
    found = decide([change, FINE, other], batch)
    assert (found["action"], found["missing"]) == ("deferred", ["c"])
    assert found["deferred"][0]["holder"] == "c" and "not in this run" in found["deferred"][0]["why"]


def test_a_restart_while_one_host_is_in_use() -> None:
    assert decide([OLD, NEW, FINE])["action"] == "restart"
    assert decide([OLD, NEW, FINE], users=[IDLE, IDLE, IDLE])["action"] == "restart"
    found = decide([OLD, NEW, FINE], users=[IDLE, IDLE, HELD])
    assert (found["action"], found["deferred"]) == ("deferred", [
        {"holder": "c: pid 7 x", "why": "has a channel open"}])
    assert decide([OLD, NEW, FINE], users=[IDLE, FAILED, IDLE])["missing"] == ["b"]


def test_owners_that_a_play_has_made_different() -> None:
    found = decide([FINE, read(owner="dra"), OLD])
    assert found["action"] == "deferred" and "host on a, c; dra on b" in found["deferred"][0]["why"]


def test_after_the_stop() -> None:
    users = [IDLE, IDLE, IDLE]
    assert decide([OLD, OLD, OLD], users=users, stops=users)["action"] == "restart"
    found = decide([OLD, OLD, OLD], users=users, stops=[IDLE, HELD, IDLE])
    assert (found["action"], found["deferred"]) == ("called_off", [
        {"holder": "b: pid 7 x", "why": "has a channel open"}])
    for stops in ([IDLE, FAILED, IDLE], [IDLE, None, IDLE], [IDLE, IDLE, IDLE]):
        found = decide([OLD, OLD, OLD], ["a", "c"], users, stops)
        assert (found["action"], found["deferred"][0]["holder"]) == ("called_off", "b")


def test_a_domain_that_nobody_was_asked_to_stop() -> None:
    skipped = {"skipped": True, "changed": False}
    assert decide([FINE, NEW, FINE], users=[skipped] * 3, stops=[skipped] * 3)["action"] == "join"
    assert decide([OLD, OLD, OLD], users=[IDLE, HELD, IDLE], stops=[skipped] * 3)["action"] == "deferred"


def test_a_restart_that_an_operator_asks_for() -> None:
    assert decide([FINE, FINE, FINE], restart=True)["action"] == "restart"
    assert decide([FINE, FINE, FINE], restart=True, users=[IDLE, HELD, IDLE])["action"] == "deferred"
    assert decide([FINE, FINE, None], ["a", "b"], restart=True)["missing"] == ["c"]
    assert decide([NEW, NEW, NEW], restart=True)["action"] == "join", "nothing runs"
    assert decide([read(owner="dra")] * 3, restart=True)["action"] == "none"


def test_many_names() -> None:
    assert domain.some(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
