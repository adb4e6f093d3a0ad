# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import random

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import report
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.report import HOUR, Window
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.report_events import Event, LostJob

DAY = Window(0.0, 24 * HOUR)


def event(node: str, start: float, end: float | None, reason: str, state: str = "DRAIN") -> Event:
    """Times in hours."""
    return Event(node, start * HOUR, None if end is None else end * HOUR, state, "root", reason)


# Four nodes for a day, 96 node-hours: n1 is out 2 h for a port and 1 h not responding, n2 from hour 20 on, n3 for 4 h
# as planned.
EVENTS = [
    event("n1", 1, 3, "aidc:health: ports: rail 2 is DOWN"), event("n1", 10, 11, "Not responding", "DOWN*"),
    event("n2", 20, None, "Xid 79"), event("n3", 5, 9, "aidc:upgrade:r1: driver"),
]


def test_by_hand() -> None:
    found = report.make(EVENTS, [LostJob("7", 2 * HOUR, 16, 1800)], 4, DAY)
    assert (found["interruptions"], found["planned"], found["nodes"]) == (3, 1, 4)
    assert found["node_hours"] == {"total": 96.0, "lost": 7.0, "lost_planned": 4.0, "available_percent": 88.542}
    assert found["mean_hours_between"] == 8.0
    assert found["mean_node_hours_between"] == round((96 - 11) / 3, 3)
    assert found["jobs"] == {"ended_by_nodes": 1, "node_hours": 8.0}
    assert [(row["cause"], row["node_hours"]) for row in found["causes"]] == [
        ("Xid 79", 4.0), ("aidc:health: ports", 2.0), ("not responding", 1.0), ("aidc:upgrade", 4.0)]
    assert found["by_node"][0] == {"node": "n1", "interruptions": 2, "planned": 0, "hours": 3.0}
    assert found["list"][-1]["end"] is None and found["list"][0]["start"] == "1970-01-01T01:00:00Z"
    json.dumps(found)


def test_events_without_a_gap_are_one_interruption() -> None:
    """A node is drained, then slurmctld adds to the reason, then it goes down: out once, for the first cause."""
    chain = [event("n1", 1, 2, "aidc:health: ports: x"), event("n1", 2, 3, "aidc:health: ports: x : Kill task failed"),
             event("n1", 3, 4, "Not responding", "DOWN*")]
    (one,) = report.interruptions(chain, DAY)
    assert (one.cause, one.hours, one.open) == ("aidc:health: ports", 3.0, False)
    assert len(report.interruptions([*chain, event("n1", 5, 6, "x")], DAY)) == 2


def test_a_start_of_slurm_says_nothing() -> None:
    chain = [event("n1", 1, 1.1, "cold-start", "UNK"), event("n1", 1.1, 2, "Not responding", "DOWN*")]
    (one,) = report.interruptions(chain, DAY)
    assert (one.cause, one.planned) == ("not responding", False)
    (alone,) = report.interruptions(chain[:1], DAY)
    assert (alone.cause, alone.planned) == ("start of Slurm", True)


@pytest.mark.parametrize(("start", "end", "hours"), [
    (-5, 3, 3.0), (23, 30, 1.0), (-5, None, 24.0), (-5, 40, 24.0), (23, None, 1.0)])
def test_the_window_cuts(start: float, end: float | None, hours: float) -> None:
    (one,) = report.interruptions([event("n1", start, end, "x")], DAY)
    assert one.hours == hours


def test_what_is_outside_is_left_out() -> None:
    assert report.interruptions([event("n1", -5, -1, "x"), event("n1", 25, 26, "x")], DAY) == []


def test_no_interruption_and_no_number_of_nodes() -> None:
    found = report.make([], [], None, DAY)
    assert found["mean_hours_between"] is None and found["node_hours"]["available_percent"] is None
    assert report.table(found)[-1] == "no node was out" and "unknown nodes" in report.table(found)[0]


def test_table() -> None:
    lines = report.table(report.make(EVENTS, [], 4, DAY))
    assert lines[1] == "interruptions: 3 (and 1 planned); mean between two: 8.0 h of the cluster, 28.3 h of a node"
    assert lines[2] == "node-hours lost: 7.0 h (and 4.0 h planned); available: 88.5 %"
    assert "CAUSE               PLANNED  INTERRUPTIONS  NODE-HOURS  NODES" in lines
    assert "aidc:upgrade        yes      1              4.0         1" in lines


def test_lost_hours_are_those_of_a_count_by_minutes() -> None:
    """Random events that overlap, touch and leave gaps, against a count of each node's minutes."""
    generator = random.Random(7)
    for _round in range(50):
        events, out = [], set()
        for _event in range(30):
            node, start = generator.randrange(4), generator.randrange(1440)
            length = generator.randrange(1, 120)
            events.append(event(f"n{node}", start / 60, (start + length) / 60, "Not responding", "DOWN*"))
            out |= {(node, minute) for minute in range(start, min(start + length, 1440))}
        found = report.make(events, [], 4, DAY)
        assert found["node_hours"]["lost"] == pytest.approx(len(out) / 60, abs=0.01)
