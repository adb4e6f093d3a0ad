# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health.model import Count, Options, Result, Verdict
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import reason, states
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.node_model import SlurmNode

OPTIONS = Options(("ports", "disk"), resume=True)
OURS = "aidc:health: ports: rail 2 is DOWN"


def node(state: str = "IDLE", why: str = "") -> SlurmNode:
    return SlurmNode("n1", states.parse(state), reason.parse(why))


def after(*runs: bool | None, options: Options = OPTIONS) -> Verdict:
    """Ports as they were in these runs; the disk is good."""
    verdict = Verdict()
    for ok in runs:
        verdict = plan.judge(options, verdict.memory, [
            Result("ports", ok, "" if ok else "rail 2 is DOWN"), Result("disk", True)])
    return verdict


@pytest.mark.parametrize(("runs", "failed"), [
    ([False], False), ([False, False], True), ([False, True, False, True, False], False),
    ([False, None, False], True), ([False, False, True, True], True), ([False, False, True, True, True], False),
    ([False, False, True, False, True, True], True), ([True, None, None], False)])
def test_one_bad_run_is_none_and_one_good_run_neither(runs: list[bool | None], failed: bool) -> None:
    assert bool(after(*runs).failed) is failed


def test_a_check_that_is_switched_off_is_forgotten() -> None:
    verdict = plan.judge(Options(("disk",)), after(False, False).memory, [Result("disk", True)])
    assert not verdict.failed and set(verdict.memory) == {"disk"}


def test_a_port_that_flaps_does_not_make_the_node_flap() -> None:
    """Up and down for an hour of runs: at most one drain, and no resume."""
    verdict, at, verbs = Verdict(), node(), []
    for number in range(60):
        good = number % 4 in (0, 1)
        verdict = plan.judge(OPTIONS, verdict.memory, [Result("ports", good, "" if good else f"down {number}"),
                                                       Result("disk", True)])
        action = plan.decide(OPTIONS, at, verdict)
        verbs.append(action.verb)
        if action.verb == "drain":
            at = node("IDLE+DRAIN", reason.format_reason("health", None, action.text))
    assert verbs.count("drain") == 1 and "resume" not in verbs


def test_drain_with_the_text() -> None:
    action = plan.decide(OPTIONS, node("MIXED"), after(False, False))
    assert (action.verb, action.text) == ("drain", "ports: rail 2 is DOWN")
    assert plan.decide(Options(("ports", "disk"), drain=False), node(), after(False, False)).verb == "none"


@pytest.mark.parametrize(("state", "why"), [
    ("IDLE+DRAIN", "owner-A: broken fan"), ("IDLE+DRAIN", "aidc:gate:r1: rail 2 slow"), ("DOWN", "xid79"),
    ("IDLE+FAIL", ""), ("IDLE+DRAIN+INVALID_REG", "gres/gpu count reported lower than configured (2 < 4)"),
    ("IDLE+DRAIN", OURS), ("IDLE+DRAIN", "aidc:health: ports: rail 3 is DOWN"),
    ("IDLE+DRAIN", f"{OURS} : Kill task failed")])
def test_no_reason_is_written_over(state: str, why: str) -> None:
    assert plan.decide(OPTIONS, node(state, why), after(False, False)).verb == "none"


def test_another_check_is_news() -> None:
    action = plan.decide(OPTIONS, node("IDLE+DRAIN", "aidc:health: disk: full"), after(False, False))
    assert action.verb == "drain"


@pytest.mark.parametrize(("state", "why", "options", "verb"), [
    ("IDLE+DRAIN", OURS, OPTIONS, "resume"), ("MIXED+DRAIN", OURS, OPTIONS, "resume"),
    ("IDLE+DRAIN", OURS, Options(("ports", "disk")), "none"), ("IDLE+DRAIN", "aidc:gate:r1: x", OPTIONS, "none"),
    ("IDLE+DRAIN", "owner-A: fan", OPTIONS, "none"), ("IDLE", "", OPTIONS, "none"),
    ("IDLE+DRAIN", f"{OURS} : Kill task failed", OPTIONS, "none"), ("IDLE+DRAIN", f"{OURS} : reboot complete", OPTIONS,
                                                                    "resume"),
    ("IDLE+DRAIN+REBOOT_REQUESTED", OURS, OPTIONS, "none"), ("IDLE+DRAIN+INVALID_REG", OURS, OPTIONS, "none")])
def test_resume_only_our_own(state: str, why: str, options: Options, verb: str) -> None:
    good = after(True, True, True, options=options)
    assert plan.decide(options, node(state, why), good).verb == verb


def test_a_check_that_this_host_has_no_use_for_is_not_waited_for() -> None:
    """A twin: one that could not be made this time is."""
    def decided(**other: t.Any) -> str:
        verdict = Verdict()
        for _ in range(3):
            verdict = plan.judge(OPTIONS, verdict.memory, [Result("ports", True), Result("disk", None, "x", **other)])
        return plan.decide(OPTIONS, node("IDLE+DRAIN", OURS), verdict).verb

    assert (decided(applies=False), decided()) == ("resume", "none")


def test_a_failure_of_a_check_without_use_is_forgotten() -> None:
    verdict = plan.judge(OPTIONS, after(False, False).memory, [Result("ports", None, "", applies=False)])
    assert not verdict.failed


def test_after_a_boot_the_good_runs_are_counted_anew() -> None:
    assert plan.decide(OPTIONS, node("IDLE+DRAIN", OURS), after(True, True)).verb == "none"
    # What cannot be checked has not passed.
    blind = plan.judge(OPTIONS, {}, [Result("ports", None), Result("disk", True)])
    assert plan.decide(OPTIONS, node("IDLE+DRAIN", OURS), blind).verb == "none"


@pytest.mark.parametrize("text", ["a : b", "line\nbreak", "x" * 500, "tab\there", "ünïcode"])
def test_every_text_makes_a_reason(text: str) -> None:
    said = plan.drain_text({"ports": text})
    assert not reason.problems_of("health", None, said) and len(said) <= 200
    assert reason.parse(reason.format_reason("health", None, said)).kind == "ours"


def test_counts_have_a_bound() -> None:
    verdict: t.Any = after(*[False] * 50)
    assert verdict.memory["ports"] == Count(2, 0, True, "rail 2 is DOWN")
