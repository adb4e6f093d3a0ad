# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import report
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.report import HostFacts

from .test_pool import member

NAMES = ["a", "b"]
TIME = "2026-01-01T00:00:00Z"
PASSED = {
    "state": "PASS",
    "label": "PASS",
    "reason": "good",
    "ratio": 0.98,
    "simulated": False,
    "limit": {"busbw_gbps": 50.0, "pass_fraction": 0.9},
}


def hosts(**changes: dict[str, t.Any]) -> dict[str, HostFacts]:
    """Both hosts as a good run leaves them; ``changes`` replaces fields by host."""
    found = {}
    for number, name in enumerate(NAMES, 1):
        facts = HostFacts(
            member=member(number, members=NAMES, not_tested="", lab=False),
            access={"host_keys": ["k"], "hostname": name},
            paths={"paths": [], "too_small": 0},
            cleanup={"left": []},
        )
        if number == 1:
            facts = dataclasses.replace(
                facts,
                made={"public_key": "k", "run_id": "l40s-1"},
                test={
                    "verdict": PASSED,
                    "result": {"peak_busbw_gbps": 49.0},
                    "command": ["mpirun"],
                    "log_path": "/x.log",
                },
            )
        found[name] = dataclasses.replace(facts, **changes.get(name, {}))
    return found


def path(**changes: t.Any) -> dict[str, t.Any]:
    return {
        "rail": 1,
        "interface": "rail1",
        "source": "198.51.101.1",
        "peer": "b",
        "peer_interface": "rail1",
        "address": "198.51.101.2",
        "size_bytes": 4200,
        "passed": False,
        "largest_bytes": 1500,
        "reason": "",
        **changes,
    }


def test_pass() -> None:
    record = report.record("l40s", hosts(), TIME)
    assert record["passed"] and not report.failed(record)
    assert (record["schema_version"], record["run_id"], record["time"], record["simulated"]) == (
        1,
        "l40s-1",
        TIME,
        False,
    )
    assert record["hosts"] == NAMES and record["peak_busbw_gbps"] == 49.0


@pytest.mark.parametrize(
    ("changes", "state", "stage", "words"),
    [
        ({"b": {"member": {}}}, "INCOMPLETE", "hosts", "not in this run: b"),
        ({"b": {"access": {"unreachable": True}}}, "INCOMPLETE", "hosts", "unreachable: b"),
        (
            {"b": {"member": member(2, members=NAMES, problems=["rail 1 is DOWN"])}},
            "INVALID",
            "rails",
            "b: rail 1 is DOWN",
        ),
        ({"a": {"made": {"failed": True, "msg": "in use by run x"}}}, "LAUNCH", "access", "a: in use by run x"),
        ({"a": {"made": {}}}, "LAUNCH", "access", "no result"),
        ({"b": {"access": {"failed": True, "msg": "no home"}}}, "LAUNCH", "access", "b: no home"),
        (
            {"a": {"paths": {"paths": [path()], "too_small": 1}}},
            "PATH",
            "path",
            "rail 1: a rail1 198.51.101.1 -> b rail1 198.51.101.2: wanted 4200 bytes, the largest that passed is 1500",
        ),
        (
            {"a": {"paths": {"paths": [path(largest_bytes=0, reason="x")], "too_small": 1}}},
            "PATH",
            "path",
            "nothing passed (x)",
        ),
        ({"b": {"paths": {"failed": True, "msg": "ping is missing"}}}, "INVALID", "path", "b: ping is missing"),
        ({"b": {"paths": {}}}, "INVALID", "path", "no result"),
        ({"a": {"test": {"failed": True, "msg": "bad option"}}}, "LAUNCH", "run", "bad option"),
        ({"a": {"test": {}}}, "LAUNCH", "run", "no result"),
        ({"a": {"test": {"verdict": None}}}, "LAUNCH", "run", "no result"),
        ({"a": {"test": {"verdict": {**PASSED, "state": "SLOW", "label": "SLOW"}}}}, "SLOW", "run", "good"),
    ],
)
def test_every_other_end_fails_with_its_stage(changes: dict[str, t.Any], state: str, stage: str, words: str) -> None:
    record = report.record("l40s", hosts(**changes), TIME)
    assert (record["state"], record["stage"]) == (state, stage)
    assert words in record["reason"]
    assert not record["passed"] and report.failed(record)
    assert report.message(record).startswith(f"pool l40s: {state} at stage {stage}: ")


def test_a_pass_of_a_failed_task_is_none() -> None:
    record = report.record("l40s", hosts(a={"test": {"failed": True, "verdict": PASSED, "msg": "x"}}), TIME)
    assert not record["passed"]


def test_not_tested_neither_passes_nor_fails() -> None:
    quiet = member(1, pool="epyc", members=["a"], not_tested="no GPU; perftest comes later")
    record = report.record("epyc", {"a": HostFacts(member=quiet)}, TIME)
    assert record["label"] == "NOT TESTED (no GPU; perftest comes later)"
    assert not record["passed"] and not report.failed(record)
    alone = {"a": HostFacts(member=member(1, members=["a"], not_tested=""))}
    assert report.record("l40s", alone, TIME)["label"] == "NOT TESTED (one host: network not tested)"
    assert report.record("l40s", hosts(), TIME, check_mode=True)["label"] == "NOT TESTED (check mode)"


def test_a_pool_that_nobody_reached_fails() -> None:
    record = report.record("l40s", {"a": HostFacts()}, TIME)
    assert report.failed(record) and record["hosts"] == []
    assert len(report.table([record])) == 3


def test_a_lab_says_so_whatever_the_state() -> None:
    changes = {name: {"member": member(number, members=NAMES, lab=True)} for number, name in enumerate(NAMES, 1)}
    changes["a"]["paths"] = {"paths": [path()], "too_small": 1}
    assert report.record("l40s", hosts(**changes), TIME)["simulated"] is True


def test_the_way_back_is_not_named_twice() -> None:
    back = path(peer="a", source="198.51.101.2", address="198.51.101.1")
    both = hosts(a={"paths": {"paths": [path()], "too_small": 1}}, b={"paths": {"paths": [back], "too_small": 1}})
    assert len(report.path_findings(NAMES, both)) == 1
    other = hosts(a={"paths": {"paths": [path()]}}, b={"paths": {"paths": [{**back, "largest_bytes": 0}]}})
    assert len(report.path_findings(NAMES, other)) == 2


def test_table_and_what_was_left_behind() -> None:
    left = [{"pid": 7, "run_id": "l40s-1", "command": "x"}]
    good = report.record("l40s", hosts(b={"cleanup": {"left": left}}), TIME)
    bad = report.record("l40s", hosts(b={"cleanup": {"unreachable": True, "msg": "gone"}}), TIME)
    lines = report.table([good, bad])
    assert lines[0].split()[:3] == ["POOL", "HOSTS", "VERDICT"]
    assert lines[1].split() == ["l40s", "2", "PASS", "49", "45", "98.0%"]
    assert lines[3:] == ["b: process 7 of run l40s-1 is still there", "b: not cleaned up: gone"]
    missing = report.record("l40s", hosts(a={"made": {"msg": "no ssh-keygen"}}), TIME)
    assert report.table([missing])[2] == "pool l40s: LAUNCH at stage access: a: no ssh-keygen"


# -- the search for the culprit ---------------------------------------------------------------------------

LINE = "b rail 2 (mlx5_2): 0.48 of its peers in 6 runs"


def search(verdict: str, culprits: list[str], **changes: t.Any) -> dict[str, t.Any]:
    suspects = [{"node": "b", "reason": "slow with a"}] if not culprits and verdict == "FAIL" else []
    return {"searched": True, "culprits": culprits, "notes": [], "launches": 5, "resumed": False, "conclusion": {
        "verdict": verdict, "reason": "as the planner says", "suspects": suspects}, **changes}


def slow(**changes: t.Any) -> dict[str, t.Any]:
    verdict = {**PASSED, "state": "SLOW", "label": "SLOW (SIMULATED)", "reason": "50.0% of 50 GB/s", "simulated": True}
    return {"test": {"verdict": verdict}, **changes}


def test_the_culprit_comes_first_in_what_the_operator_reads() -> None:
    record = report.record("l40s", hosts(a=slow(search=search("FAIL", [LINE]))), TIME)
    assert report.failed(record) and (record["state"], record["stage"]) == ("SLOW", "search")
    assert report.message(record) == (
        f"pool l40s: SLOW (SIMULATED) at stage search: culprit {LINE}; 50.0% of 50 GB/s")
    assert record["search"]["culprits"] == [LINE] and record["search"]["launches"] == 5


def test_without_proof_nobody_is_called_a_culprit() -> None:
    record = report.record("l40s", hosts(a=slow(search=search("FAIL", [], notes=["ended: time limit"]))), TIME)
    assert record["reason"] == ("no culprit: as the planner says (suspects: b); ended: time limit; 50.0% of 50 GB/s")
    record = report.record("l40s", hosts(a=slow(search={"failed": True, "msg": "bad rules"})), TIME)
    assert record["reason"] == "50.0% of 50 GB/s; the search for the culprit failed: bad rules"
    assert record["search"] is None and record["stage"] == "run"


def test_a_search_makes_nothing_pass_and_can_take_a_pass_away() -> None:
    record = report.record("l40s", hosts(a=slow(search=search("PASS", []))), TIME)
    assert record["state"] == "SLOW" and report.failed(record)
    good = {"made": {"public_key": "k"}, "test": {"verdict": PASSED}}
    for verdict, state in (("FAIL", "SLOW"), ("SLOW", "SLOW"), ("INCOMPLETE", "INCOMPLETE")):
        record = report.record("l40s", hosts(a={**good, "search": search(verdict, [])}), TIME)
        assert (record["state"], record["label"], record["passed"]) == (state, state, False)
    record = report.record("l40s", hosts(a={**good, "search": search("PASS", [])}), TIME)
    assert record["passed"] and record["stage"] == "run"
