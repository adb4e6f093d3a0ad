# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import report_events
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.report_events import Event

FIXTURES = Path(__file__).resolve().parent / "fixtures"


def event(reason: str, state: str = "DRAIN") -> Event:
    return Event("n1", 0.0, 1.0, state, "root", reason)


def test_captured_events() -> None:
    """From slurmdbd 24.11.5, with SLURM_TIME_FORMAT=%s."""
    found = report_events.events((FIXTURES / "sacctmgr_show_event-24.11.txt").read_text(encoding="utf-8"))
    assert {one.node for one in found} == {"n1", "n2", "n3", "n4"}, "events of the cluster are no node's"
    assert any(one.reason == "aidc:gate:r1: rail 2 slow | bar" and one.user == "root" for one in found)
    assert any(one.end is None for one in found)
    assert {report_events.cause_of(one)[0] for one in found} == {
        "registration: gres/gpu", "start of Slurm", "operator", "aidc:gate", "aidc:health: gpus", "not responding"}


def test_times_of_this_host_are_taken_too() -> None:
    (found,) = report_events.events("n1|2026-11-30T21:57:37|Unknown|INVAL|slurm(64030)|x\n")
    assert found.end is None and found.start > 1e9


@pytest.mark.parametrize("text", ["n1|1|2|DOWN\n", "n1|soon|2|DOWN|root(0)|x\n", "sacctmgr: error: x\n"])
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="got the"):
        report_events.events(text)


@pytest.mark.parametrize(("reason", "state", "cause", "planned"), [
    ("aidc:gate:r1: rail 2 slow", "DRAIN", "aidc:gate", False),
    ("aidc:handover:r1: to kubernetes", "DRAIN", "aidc:handover", True),
    ("aidc:health: ports: x is DOWN; disk: full", "DRAIN", "aidc:health: ports", False),
    ("aidc:health: ports: x", "DRAIN$", "aidc:health: ports", True),
    ("Not responding", "DOWN*", "not responding", False),
    ("Node unexpectedly rebooted", "DOWN", "unexpected reboot", False),
    ("reboot issued", "DOWN^", "reboot by Slurm", True), ("cold-start", "UNK", "start of Slurm", True),
    ("gres/gpu count reported lower than configured (2 < 4)", "INVAL", "registration: gres/gpu", False),
    ("Low RealMemory (reported:1 < 95.00% of configured:2)", "INVAL", "registration: RealMemory", False),
    ("NHC: check_hw_ib", "DRAIN", "NHC", False), ("xid79 GPU fell off the bus", "DOWN", "Xid 79", False),
    ("GPU 3: Xid (PCI:0000:9b:00): 119, x", "DRAIN", "Xid 119", False), ("Xid 94 seen", "DRAIN", "Xid 94", False),
    ("Kill task failed", "DRAIN", "processes that cannot be ended", False), ("broken fan", "DRAIN", "operator", False),
    ("", "DOWN", "no reason", False)])
def test_causes(reason: str, state: str, cause: str, planned: bool) -> None:
    assert report_events.cause_of(event(reason, state)) == (cause, planned)


def test_jobs_that_a_node_ended() -> None:
    text = ("7|COMPLETED|1|2|1|21\n9|NODE_FAIL|10|3610|16|3600\n9|NODE_FAIL|3700|Unknown|16|10\n"
            "6|CANCELLED|None|5|2|0\n")
    found = report_events.jobs(text)
    assert [(job.job, job.nodes, job.seconds, job.end) for job in found] == [
        ("9", 16, 3600, 3610.0), ("9", 16, 10, None)]
