# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop around the planner names who is in the way, can be cut short anywhere and goes on."""
from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import document, search, searching
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.plan import Planner
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.search import Setting, rules_of
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.searching import Searching, Stopped, resumed

from .launched import RULES, SETTING, Hosts


def small(count: int) -> Setting:
    return dataclasses.replace(SETTING, nodes=SETTING.nodes[:count])


def searching_of(hosts: t.Callable[..., t.Any], setting: Setting = SETTING, planner: Planner | None = None,
                 **more: t.Any) -> tuple[Searching, list[str], list[dict[str, t.Any]]]:
    said: list[str] = []
    kept: list[dict[str, t.Any]] = []
    planner = planner or Planner(setting.nodes, setting.rules, 1, setting.pool)
    return Searching(setting, planner, hosts, said.append, kept.append, **more), said, kept


def concluded(hosts: Hosts, setting: Setting = SETTING) -> tuple[dict[str, t.Any], list[str]]:
    work, _said, _kept = searching_of(hosts, setting)
    work.run()
    plain = work.planner.conclusion().to_dict()
    assert plain["done"] and work.case()["done"]
    return plain, search.culprits(plain, document.replay(work.case()["search"])[0], setting.rails)


@pytest.mark.parametrize("count", [4, 8])
def test_one_slow_rail_is_named_with_its_node_and_device(count: int) -> None:
    plain, lines = concluded(Hosts({("gb2", 2): 0.48}), small(count))
    assert plain["verdict"] == "FAIL" and plain["bad_nodes"] == ["gb2"] and plain["verified"]
    assert [(one["kind"], one["rails"]) for one in plain["convicted"]] == [("rail", (2,))]
    (line,) = lines
    assert line.startswith("gb2 rail 2 (mlx5_2): 0.49 of its peers in ") or "0.50 of its peers" in line


def test_a_rail_that_only_its_own_pair_has_run_alone_is_compared_with_the_nodes_other_rails() -> None:
    setting = dataclasses.replace(small(4), rules=rules_of({"flaky_repeats": 0}, ["ring"], 4, False, 0.9))
    hosts = Hosts({("gb2", 2): 0.48})
    plain, (line,) = concluded(hosts, setting)
    alone = {tuple(launch["hosts"]) for launch in hosts.asked if "-rail" in launch["id"]}
    assert len(alone) == 1 and "gb2" in alone.pop(), "its partner's rail was measured with it only"
    assert plain["verified"] and line.startswith("gb2 rail 2 (mlx5_2): ")
    assert 0.47 < float(line.split()[4]) < 0.52 and " of its other rails in " in line, line


def test_one_node_slow_on_all_rails_is_named_as_a_node() -> None:
    plain, (line,) = concluded(Hosts({("gb3", rail): 0.5 for rail in range(4)}), small(4))
    assert [(one["kind"], one["nodes"]) for one in plain["convicted"]] == [("node", ("gb3",))]
    assert line.startswith("gb3: 0.5") and "of its peers" in line


def test_a_dead_rail_and_a_slow_one_at_once() -> None:
    plain, lines = concluded(Hosts({("gb6", 1): 0.5}, dead={("gb2", 3)}))
    assert plain["bad_nodes"] == ["gb2", "gb6"] and plain["verified"]
    assert any(line.startswith("gb6 rail 1 (mlx5_1)") for line in lines)
    assert any(line.startswith("gb2 rail 3 (mlx5_3)") for line in lines), lines


def test_a_node_that_hangs_costs_one_time_limit_for_each_try_and_is_named() -> None:
    hosts = Hosts(hung={"gb5"})
    plain, lines = concluded(hosts)
    assert plain["bad_nodes"] == ["gb5"] and lines[0].startswith("gb5: hangs in ")


@pytest.mark.parametrize("count", [2, 4, 8])
def test_nobody_is_blamed_when_everybody_is_slow(count: int) -> None:
    plain, lines = concluded(Hosts(everybody=0.6), small(count))
    assert (plain["verdict"], plain["convicted"], lines) == ("FAIL", [], [])
    assert "nobody is blamed" in plain["reason"]


def test_a_sound_pool_passes_and_few_launches_say_so() -> None:
    hosts = Hosts()
    plain, lines = concluded(hosts)
    assert (plain["verdict"], lines) == ("PASS", [])
    assert all(set(launch["hosts"]) == {node.name for node in SETTING.nodes} for launch in hosts.asked)


def test_one_line_for_each_round_and_the_search_is_kept_after_it() -> None:
    work, said, kept = searching_of(Hosts({("gb2", 2): 0.48}), small(4))
    work.run()
    assert len(said) == len(kept) and said[0].startswith("gb200: round 1, whole: all 4 nodes: ring; 1 of 1 runs")
    assert any("convicted gb2" in line for line in said)
    for case in kept:
        assert Planner.from_dict(json.loads(json.dumps(case))["search"]).to_dict() == case["search"]
    assert [case["done"] for case in kept].count(True) == 1 and kept[-1]["done"]


def test_a_search_that_is_cut_short_goes_on_and_ends_like_one_that_was_not() -> None:
    hosts = Hosts({("gb2", 2): 0.48}, noise=0)
    whole, _said, kept = searching_of(hosts, small(4))
    whole.run()
    for number in (0, len(kept) // 2, len(kept) - 2):
        stored = json.loads(json.dumps(kept[number]))
        planner = resumed(stored, small(4), 60, 7200)
        assert planner is not None
        rest, said, _kept = searching_of(Hosts({("gb2", 2): 0.48}, noise=0), small(4), planner)
        rest.run()
        assert rest.planner.conclusion() == whole.planner.conclusion()
        assert len(said) == len(kept) - number - 1


def test_what_was_asked_otherwise_or_long_ago_or_to_its_end_is_not_gone_on_with() -> None:
    work, _said, kept = searching_of(Hosts({("gb2", 2): 0.48}), small(4))
    work.run()
    stored = kept[0]
    assert resumed(stored, small(4), 60, 7200) is not None
    assert resumed(stored, small(4), 7201, 7200) is None and resumed(stored, small(4), -5, 7200) is None
    changes: tuple[dict[str, t.Any], ...] = (
        {"min_busbw_gbps": 199.0}, {"environment": {}}, {"max_bytes": "8G"}, {"nodes": SETTING.nodes[:3]},
        {"rules": dataclasses.replace(RULES, looks=4)}, {"rails": {0: "mlx5_0:1"}})
    for changed in changes:
        assert resumed(stored, dataclasses.replace(small(4), **changed), 60, 7200) is None, changed
    assert resumed(kept[-1], small(4), 60, 7200) is None
    for broken in (None, {}, {**stored, "search": {}}, {**stored, "search": {**stored["search"], "format": 9}}):
        assert resumed(broken, small(4), 60, 7200) is None


def test_the_end_of_the_time_and_of_the_hosts_is_said_and_nobody_is_convicted() -> None:
    def gone(_launches: t.Any) -> t.Any:
        raise Stopped("unreachable")

    work, _said, kept = searching_of(gone)
    work.run()
    assert work.notes == ["the search was ended: unreachable"] and kept == []
    assert work.planner.conclusion().verdict == "INCOMPLETE"
    work, _said, kept = searching_of(Hosts(), over=lambda: len(kept) > 1)
    work.run()
    assert len(kept) == 2 and "time limit" in work.notes[0] and not work.case()["done"]


@pytest.mark.parametrize(("policy", "state", "expected"), [
    ("on_failure", "SLOW", True), ("on_failure", "WRONG", True), ("on_failure", "HANG", False),
    ("always", "HANG", True),
    ("on_failure", "CRASH", True), ("on_failure", "PASS", False), ("on_failure", "LAUNCH", False),
    ("on_failure", "INCOMPLETE", False), ("on_failure", "INVALID", False), ("on_failure", None, False),
    ("always", "PASS", True), ("always", "LAUNCH", False), ("always", "SLOW", True), ("never", "SLOW", False)])
def test_when_it_is_searched(policy: str, state: str | None, expected: bool) -> None:
    assert searching.wanted(policy, state) is expected
