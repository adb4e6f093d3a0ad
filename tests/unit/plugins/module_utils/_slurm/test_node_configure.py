# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_node against a slurmctld that is a model: what it does, refuses and waits for."""
from __future__ import annotations

import copy
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.node_configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.node_model import Request

from tests.unit.plugins.module_utils._slurm.fake_slurm import Fake, FakeSlurm

OURS = "aidc:gate:r1: rail 2 slow"


@pytest.fixture(params=["24.11", "22.05"])
def slurm(request: pytest.FixtureRequest, tmp_path: Path) -> FakeSlurm:
    """With JSON, and a release whose scontrol has none."""
    return FakeSlurm(tmp_path, {"n1": Fake(), "n2": Fake()}, has_json=request.param == "24.11")


def want(*nodes: str, **options: t.Any) -> Request:
    given = {"state": "drained", "source": "gate", "run_id": "r1", "reason": "rail 2 slow", **options}
    return Request(nodes or ("n1", "n2"), **given)


def call(slurm: FakeSlurm, request: Request) -> dict[str, t.Any]:
    """The run; check mode before it says the same, and a second run changes nothing."""
    before = copy.deepcopy(slurm.nodes)
    slurm.calls.clear()
    predicted = configure(slurm.machine(), request, True)
    slurm.nodes = before
    assert not slurm.updates
    result = configure(slurm.machine(), request, False)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == result[key], key
    again = configure(slurm.machine(), request, False)
    assert again["changed"] is False and again["commands"] == [] and again["before"] == again["after"]
    return result


def refused(slurm: FakeSlurm, request: Request) -> str:
    messages = []
    slurm.calls.clear()
    for check_mode in (True, False):
        with pytest.raises(AidcError) as caught:
            configure(slurm.machine(), request, check_mode)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and "Nothing was changed." in messages[0] and not slurm.updates
    return messages[0]


def test_drain_several_in_one_command(slurm: FakeSlurm) -> None:
    result = call(slurm, want())
    assert result["commands"] == [["scontrol", "update", "nodename=n1,n2", "state=drain", f"reason={OURS}"]]
    assert all(node["drained"] and node["reason"] == OURS and node["owner"] == "gate" for node in result["nodes"])


def test_a_drain_waits_for_the_jobs(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("MIXED", jobs=8)
    result = call(slurm, want())
    assert slurm.now > 0 and all(node["drained"] for node in result["nodes"])


def test_a_drain_that_does_not_wait(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("ALLOCATED", jobs=50)
    result = call(slurm, want(state="draining"))
    assert slurm.now == 0 and [node["drained"] for node in result["nodes"]] == [False, True]


@pytest.mark.parametrize(("fake", "words"), [
    (Fake("ALLOCATED", jobs=10_000), "its jobs still run"), (Fake("IDLE", {"COMPLETING"}), "its jobs still run"),
    (Fake("DOWN"), "its slurmd does not answer"), (Fake("DOWN", {"REBOOT_ISSUED"}), "a reboot is under way")])
def test_the_wait_has_a_bound(slurm: FakeSlurm, fake: Fake, words: str) -> None:
    slurm.nodes["n1"] = fake
    with pytest.raises(AidcError) as caught:
        configure(slurm.machine(), want(wait_seconds=10.0), False)
    assert "n1: got" in str(caught.value) and words in str(caught.value) and "after 10 s" in str(caught.value)
    assert "wanted IDLE+DRAIN and not COMPLETING" in str(caught.value) and "n2" not in caught.value.problems[0].object
    assert caught.value.done and slurm.now == 10


@pytest.mark.parametrize("fake", [
    Fake("IDLE", {"DRAIN"}, "owner-A: broken fan"), Fake("IDLE", {"DRAIN"}, "aidc:handover:r9: to kubernetes"),
    Fake("IDLE", {"DRAIN"}, "aidc:gate:r0: yesterday"), Fake("DOWN", set(), "Node unexpectedly rebooted"),
    Fake("IDLE", {"FAIL"}), Fake("IDLE", set(), "a note of somebody"), Fake("IDLE", {"DRAIN"}, "NHC: disk"),
    Fake("IDLE", {"DRAIN", "INVALID_REG"}, "gres/gpu count reported lower than configured (2 < 4)")])
def test_a_reason_of_another_is_never_replaced(slurm: FakeSlurm, fake: Fake) -> None:
    slurm.nodes["n2"] = copy.deepcopy(fake)
    message = refused(slurm, want())
    assert message.startswith("n2: got") and (not fake.reason or fake.reason in message)
    kept = want(when_held="keep", wait_seconds=0.0)
    slurm.nodes["n2"].flags |= {"DRAIN"}
    if fake.base != "DOWN":
        result = configure(slurm.machine(), kept, False)
        assert result["held"] == ["n2"] and slurm.nodes["n2"].reason == fake.reason
        assert result["commands"] == [["scontrol", "update", "nodename=n1", "state=drain", f"reason={OURS}"]]


def test_what_slurm_itself_would_replace(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("DOWN", {"NOT_RESPONDING"}, "Not responding", "slurm", jobs=0)
    result = call(slurm, want(state="draining"))
    assert result["after"][0]["reason"] == OURS


def test_our_own_reason_may_change(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "aidc:gate:r1: rail 3 slow")
    result = call(slurm, want("n1"))
    assert result["steps"][0]["why"] == "the reason says something else"


def test_text_that_slurm_has_added_stays(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, f"{OURS} : Kill task failed")
    slurm.nodes["n2"] = Fake("IDLE", {"DRAIN"}, "aidc:gate:r1: other : Kill task failed")
    assert call(slurm, want())["changed"] is False
    assert refused(slurm, want("n1", state="resumed")).startswith("n1: got reason with 'Kill task failed' added to it")


@pytest.mark.parametrize("added", ["", " : reboot complete", " : Not responding",
                                   " : gres/gpu count reported lower than configured (2 < 4)"])
def test_resume_what_is_ours(slurm: FakeSlurm, added: str) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, OURS + added)
    result = call(slurm, want(state="resumed"))
    assert result["commands"] == [["scontrol", "update", "nodename=n1", "state=resume"]]
    assert result["nodes"][0]["usable"] and result["nodes"][0]["reason"] == ""


def test_resume_of_any_run_of_a_source(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "aidc:gate:yesterday: x")
    assert refused(slurm, want("n1", state="resumed")).startswith("n1: got IDLE+DRAIN, reason 'aidc:gate:yesterday: x'")
    assert call(slurm, want("n1", state="resumed", run_id=None))["changed"]


@pytest.mark.parametrize("fake", [
    Fake("IDLE", {"DRAIN"}, "owner-A: broken fan"), Fake("IDLE", {"DRAIN"}, "aidc:health: ports: down"),
    Fake("DOWN", set(), "Node unexpectedly rebooted"), Fake("IDLE", {"FAIL"}, "xid79"), Fake("IDLE", {"DRAIN"}, "")])
def test_resume_only_what_is_ours(slurm: FakeSlurm, fake: Fake) -> None:
    slurm.nodes["n2"] = copy.deepcopy(fake)
    message = refused(slurm, want(state="resumed"))
    assert message.startswith("n2: got") and "aidc:gate:r1: ..." in message


def test_force_takes_the_whole_reason(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "owner-A: broken fan")
    refused(slurm, want("n1", state="resumed", force_reason="owner-A"))
    refused(slurm, want("n1", state="resumed", force_reason=""))
    assert call(slurm, want("n1", state="resumed", force_reason="owner-A: broken fan"))["changed"]


def test_undrain_leaves_a_node_down(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("DOWN", {"DRAIN"}, OURS)
    slurm.nodes["n2"] = Fake("DOWN", set(), "Not responding")
    result = call(slurm, want(state="undrained"))
    assert result["commands"] == [["scontrol", "update", "nodename=n1", "state=undrain"]]
    assert result["after"][0]["down"] and not result["after"][0]["drain"]


def test_invalid_registration_is_explained(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN", "INVALID_REG"}, "gres/gpu count reported lower than configured (2 < 4)")
    assert refused(slurm, want(state="resumed")).startswith("n1 gres/gpu: got 2, wanted 4 (slurmctld resumes no node")
    # The older reason stands and only the state tells [driver-slurm-k8s 3.6].
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN", "INVALID_REG"}, OURS)
    assert "n1: got not said: the reason is an older one" in refused(slurm, want(state="resumed"))


def test_a_pending_reboot_is_not_undone(slurm: FakeSlurm) -> None:
    for flag, word in (("REBOOT_REQUESTED", "requested"), ("REBOOT_ISSUED", "issued")):
        slurm.nodes["n1"] = Fake("IDLE", {"DRAIN", flag}, OURS)
        assert f"a reboot is {word}" in refused(slurm, want(state="resumed"))


def test_a_resumed_node_gets_time_to_answer(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, OURS)
    slurm.silent = 5
    result = configure(slurm.machine(), want("n1", state="resumed"), False)
    assert result["nodes"][0]["usable"] and 2 <= slurm.now <= 60
    slurm.nodes["n1"], slurm.silent = Fake("IDLE", {"DRAIN"}, OURS), 10_000
    with pytest.raises(AidcError, match="NOT_RESPONDING after 60 s, wanted an answer of its slurmd"):
        configure(slurm.machine(), want("n1", state="resumed"), False)


def test_a_resumed_node_that_registers_with_too_little(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, OURS)

    def update() -> Result:
        slurm.nodes["n1"] = Fake("IDLE", {"INVALID_REG"}, "Low RealMemory (reported:1 < 95.00% of configured:9)")
        return Result((), "ok", 0)

    slurm.override[("scontrol", "update")] = update
    with pytest.raises(AidcError, match=r"n1 RealMemory: got 1 MiB, wanted at least 95.00 % of 9 MiB"):
        configure(slurm.machine(), want("n1", state="resumed"), False)


def test_unknown_nodes_and_host_lists(slurm: FakeSlurm) -> None:
    assert refused(slurm, want("n1", "nosuch")).startswith("nosuch: got no such node in Slurm")
    assert call(slurm, want("n[1-2]", "n1"))["commands"][0][2] == "nodename=n1,n2"
    assert "an empty list" in refused(slurm, Request((), "draining", "gate", None, "x"))


def test_answers_with_more_than_was_asked_for(slurm: FakeSlurm) -> None:
    slurm.ignores_filter = True
    slurm.nodes["n2"] = Fake("IDLE", {"DRAIN"}, "owner-A: broken fan")
    assert call(slurm, want("n1"))["commands"][0][2] == "nodename=n1"


def test_a_tool_that_lies_is_found_out(slurm: FakeSlurm) -> None:
    slurm.lies = True
    with pytest.raises(AidcError, match="read back after all steps") as caught:
        configure(slurm.machine(), want("n1"), False)
    assert caught.value.done


def test_somebody_who_is_faster(slurm: FakeSlurm) -> None:
    def update() -> Result:
        slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, "owner-B: mine")
        return Result((), "ok", 0)

    slurm.override[("scontrol", "update")] = update
    with pytest.raises(AidcError, match="did somebody else set it at the same moment"):
        configure(slurm.machine(), want("n1"), False)


@pytest.mark.parametrize(("result", "words"), [
    (Result((), "missing"), "install the package slurm-client"),
    (Result((), "timeout", None, "", "no answer within 1 s; ended by us"), "slurmctld does not answer"),
    (Result((), "failed", 1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)"),
     "Unable to contact slurm controller"),
    (Result((), "ok", 0, "\x00garbage"), "output that cannot be read")])
def test_tools_that_do_not_answer(slurm: FakeSlurm, result: Result, words: str) -> None:
    slurm.override[("scontrol",)] = lambda: result
    assert words in refused(slurm, want())


def test_an_update_that_is_refused(slurm: FakeSlurm) -> None:
    slurm.override[("scontrol", "update")] = lambda: Result((), "failed", 1, "slurm_update error: Access denied")
    with pytest.raises(AidcError, match=r"nodename=n1,n2 state=drain.*Access denied.*operator of Slurm.*Nothing was"):
        configure(slurm.machine(), want(), False)


def test_many_nodes_are_told_in_pieces(slurm: FakeSlurm) -> None:
    slurm.nodes = {f"n{number}": Fake() for number in range(1201)}
    result = configure(slurm.machine(), want(*slurm.nodes), False)
    assert [len(step["nodes"]) for step in result["steps"]] == [500, 500, 201]
    assert all(len(word) < 100_000 for command in result["commands"] for word in command)


def test_a_killed_run_is_completed(slurm: FakeSlurm) -> None:
    slurm.nodes["n1"] = Fake("IDLE", {"DRAIN"}, OURS)
    assert call(slurm, want())["commands"] == [["scontrol", "update", "nodename=n2", "state=drain", f"reason={OURS}"]]
