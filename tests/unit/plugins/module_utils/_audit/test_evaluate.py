# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every rule speaks for its own change and for nothing else, and is silent for a legal state that looks similar."""
from __future__ import annotations

import itertools
import random
import typing as t

import pytest

from plugins.module_utils._audit import evaluate, expect, facts
from plugins.module_utils._audit.evaluate import ALL_RULES, Audit, holds
from tests.unit.plugins.module_utils._audit.cases import CASES, VICTIM, Case, audit, change, found, read
from tests.unit.plugins.module_utils._audit.fleet import GB200, L40S, Fleet


def fleet() -> Fleet:
    return Fleet((GB200, 5), (L40S, 3))


def expected(case: Case, name: str = VICTIM) -> list[tuple[str, tuple[str, ...], int | None]]:
    hosts = tuple(sorted([name, *case.get("also_named", ())]))
    return sorted((rule, hosts, rail) for rule, rail in case["finds"].items())


def test_a_consistent_fleet_has_no_findings() -> None:
    assert audit(fleet())["findings"] == []


def test_every_rule_has_a_case() -> None:
    ids = [rule.id for rule in ALL_RULES]
    assert len(set(ids)) == len(ids)
    assert {name.partition(" ")[0] for name in CASES} == set(ids)


@pytest.mark.parametrize("name", CASES)
def test_the_change_gives_its_finding_and_no_other(name: str) -> None:
    case = CASES[name]
    seen = found(change(fleet(), case))
    if case.get("hosts") == "every":
        assert {(rule, rail) for rule, _hosts, rail in seen} == {(name, None)}
        assert sum(len(hosts) for _rule, hosts, _rail in seen) == 8
    else:
        assert sorted(seen, key=str) == sorted(expected(case), key=str)


@pytest.mark.parametrize("name", CASES)
def test_a_legal_state_that_looks_similar_gives_none(name: str) -> None:
    assert found(change(fleet(), CASES[name]["twin"])) == []


@pytest.mark.parametrize("name", CASES)
def test_words_name_host_and_values(name: str) -> None:
    for one in audit(change(fleet(), CASES[name]))["findings"]:
        assert one["severity"] in ("error", "warning", "note")
        assert all(one[key] for key in ("pool", "got", "wanted", "fix", "source", "evidence"))
        assert "None" not in f"{one['got']} {one['wanted']} {one['evidence']}"
        if CASES[name].get("hosts") != "every":
            assert VICTIM in " ".join(one["evidence"])


# Cases that change one port or record, and so may meet another one on another host.
SINGLE = [name for name, case in CASES.items() if not {"every", "also_named", "hosts"} & set(case)]
_random = random.Random(7)
PAIRS = [tuple(_random.sample(SINGLE, 2)) for _number in range(60)]


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_two_at_once_on_two_hosts(pair: tuple[str, str]) -> None:
    """Each gives what it gives alone."""
    both = change(change(fleet(), CASES[pair[0]]), CASES[pair[1]], "gb200-0004")
    alone = expected(CASES[pair[0]]) + expected(CASES[pair[1]], "gb200-0004")
    if pair[0] == pair[1]:
        return
    assert sorted(found(both), key=str) == sorted(alone, key=str)


# Two hosts with one and the same address would be a finding of their own.
@pytest.mark.parametrize("name", [name for name in SINGLE if "inventory" not in CASES[name]
                                  and name not in ("address-swapped", "rails-one-subnet")])
def test_the_same_on_several_hosts_is_one_finding(name: str) -> None:
    one = change(fleet(), CASES[name])
    seen = found(change(one, CASES[name], "gb200-0004"))
    assert {hosts for _rule, hosts, _rail in seen} == {(VICTIM, "gb200-0004")}
    assert {rule for rule, _hosts, _rail in seen} == {rule for rule in CASES[name]["finds"]}


def shuffled(one: Fleet, seed: int) -> Fleet:
    names = list(one.values)
    random.Random(seed).shuffle(names)
    one.values = {name: one.values[name] for name in names}
    return one


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_hosts_changes_nothing(seed: int) -> None:
    names = ["port-speed", "pfc-priority", "firmware-uneven", "mac-duplicate", "cabling-lldp", "path-mtu"]
    one = fleet()
    for name in names:
        change(one, CASES[name])

    def key(document: dict[str, t.Any]) -> list[tuple[t.Any, ...]]:
        return sorted((entry["id"], entry["rail"], sorted(entry["hosts"]), sorted(entry["evidence"]))
                      for entry in document["findings"])

    before = key(audit(one))
    assert {entry[0] for entry in before} == set(names)
    assert key(audit(shuffled(one, seed))) == before


@pytest.mark.parametrize("seed", range(12))
def test_a_random_fleet_has_none_and_one_change_gives_its_own(seed: int) -> None:
    """Sizes, MTUs, rails and firmware of the classes are drawn; classes may differ in all of them."""
    chance = random.Random(seed)
    kinds = [kind._replace(rails=chance.randint(4, 8), mtu=chance.choice([4200, 5000, 9000]), speed=32.0,
                           firmware=f"28.{chance.randint(30, 50)}.{chance.randint(1000, 3000)}", gbps=400)
             for kind in (GB200, L40S)]
    sizes = [chance.randint(3, 12), chance.randint(1, 9)]

    def make() -> Fleet:
        return Fleet((kinds[0], sizes[0]), (kinds[1], sizes[1]))

    assert found(make()) == []
    for name in chance.sample([name for name in SINGLE if "mtu" not in name and "duplicate" not in name
                               and "inventory" not in CASES[name]], 6):
        seen = found(change(make(), CASES[name]))
        assert sorted(seen, key=str) == sorted(expected(CASES[name]), key=str), name


# -- majority ---------------------------------------------------------------------------------------------------------


def firmware(count: int, of: int) -> list[dict[str, t.Any]]:
    one = Fleet((GB200, of))
    for name in list(one.values)[:count]:
        for device in one.records[name]["mlx5_info"]["devices"]:
            device["firmware_version"] = "28.39.1002"
    return [entry for entry in audit(one)["findings"] if entry["id"] == "firmware-uneven"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_minority_is_named(count: int) -> None:
    (finding,) = firmware(count, 8)
    assert finding["hosts"] == [f"gb200-{number:04}" for number in range(1, count + 1)]
    assert finding["wanted"] == f"28.43.2026, as {32 - 4 * count} of 32"


def test_a_split_blames_nobody() -> None:
    (finding,) = firmware(4, 8)
    assert (finding["hosts"], finding["where"]) == ([], "nobody")
    assert finding["got"] == "split: firmware 28.39.1002: gb200-[0001-0004]; firmware 28.43.2026: gb200-[0005-0008]"


def test_hosts_that_are_no_pool_of_ours_have_no_majority_with_others() -> None:
    assert firmware(8, 8) == []


# -- findings that explain others -------------------------------------------------------------------------------------


def test_a_path_is_explained_by_its_end() -> None:
    one = change(fleet(), CASES["path-mtu"])
    assert ("path-mtu", (VICTIM,), 0) in found(one)
    one.records["gb200-0003"]["mlx5_info"]["devices"][0]["ports"][0].update(mtu_bytes=1500, rdma_mtu_bytes=1024)
    assert [entry[0] for entry in found(one)] == ["mtu-running"]


def test_both_ends_of_a_path_are_one_finding() -> None:
    one = change(fleet(), CASES["path-mtu"])
    back = {**one.records["gb200-0003"]["path_probe"]["paths"][0], "peer": VICTIM, "passed": False,
            "largest_bytes": 1500}
    one.records["gb200-0003"]["path_probe"]["paths"].append(back)
    assert found(one) == [("path-mtu", (VICTIM,), 0)]


def test_a_rule_may_be_allowed_on_one_host_only() -> None:
    one = change(change(fleet(), CASES["rail-bond"]), CASES["rail-bond"], "gb200-0004")
    one.values["gb200-0004"]["fabric_audit_allow"] = ["rail-bond"]
    assert found(one) == [("rail-bond", (VICTIM,), 1)]


# -- size -------------------------------------------------------------------------------------------------------------


def test_work_grows_with_the_fleet_and_not_faster() -> None:
    looked = []
    for hosts in (16, 64, 256):
        one = Fleet((GB200, hosts))
        wants = expect.load(one.document())
        run = Audit(wants, read(one, wants))
        run.run()
        looked.append((run.looked, len(run.known)))
    assert [count for count, _known in looked] == [16 * 8, 64 * 8, 256 * 8]
    assert [known for _count, known in looked] == [1, 1, 1], "equal rails are judged once"


# -- the table of rules -----------------------------------------------------------------------------------------------


def test_rules_name_values_that_exist() -> None:
    wants = {f"want_{name}" for name in expect.Want._fields}
    known = {"rail": {*facts.Rail._fields, *wants}, "host": {*facts.Host._fields, *wants, "want_neighbours"},
             "path": {*facts.Path._fields}, "uniform": {*facts.Rail._fields, *facts.Place._fields, *facts.Host._fields,
                                                        *wants},
             "unique": {*facts.Place._fields, *facts.Host._fields}}
    ids = {rule.id for rule in ALL_RULES}
    for rule in ALL_RULES:
        for name, how, wanted in (rule.check, *rule.when):
            assert name in known[rule.scope], rule.id
            if isinstance(wanted, str) and wanted.startswith("@"):
                assert wanted[1:] in known[rule.scope], rule.id
            if rule.scope in ("rail", "host", "path"):
                assert how in ("none", "some", "is", "at-least", "at-most"), rule.id
        assert set(rule.unless) <= ids, rule.id
        assert all(rule[number] for number in range(8)), rule.id


@pytest.mark.parametrize(("check", "values", "wanted"), [
    (("a", "is", 1), {"a": 1}, True), (("a", "is", 1), {"a": 2}, False), (("a", "is", 1), {"a": None}, None),
    (("a", "is", "@b"), {"a": 1, "b": None}, None), (("a", "at-least", "@b"), {"a": 2, "b": 3}, False),
    (("a", "at-most", 1), {"a": 1}, True), (("a", "none", None), {"a": None}, True),
    (("a", "none", None), {"a": "x"}, False), (("a", "some", None), {"a": 0}, False),
])
def test_holds(check: t.Any, values: dict[str, t.Any], wanted: bool | None) -> None:
    assert holds(check, values) is wanted


def test_no_rule_hides_another_for_good() -> None:
    """``unless`` has no circle."""
    unless = {rule.id: set(rule.unless) for rule in ALL_RULES}
    for _round, rule in itertools.product(range(len(unless)), list(unless)):
        unless[rule] |= set().union(*(unless.get(other, set()) for other in unless[rule]))
    assert not any(rule in others for rule, others in unless.items())
    assert len(evaluate.RAIL_RULES) > 40
