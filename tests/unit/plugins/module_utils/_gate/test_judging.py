# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import io
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.cause import Wanted
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.classes import CLASSES, node_class
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.judging import Ask, Judgement, judge_stream, judged
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.model import Expected
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.run import Criteria

LOGS = Path(__file__).parents[1] / "_nccl" / "fixtures"
# One node with eight GPUs, peak 468 GB/s, data checked.
GOOD = (LOGS / "v2.19.6-single-process.txt").read_bytes()


def judge(log: bytes, **ask: t.Any) -> Judgement:
    return judge_stream(io.BytesIO(log), Ask(**ask))


def test_a_log_alone_never_passes() -> None:
    done = judge(GOOD)
    assert done.verdict.state == "INCOMPLETE" and "the bandwidth was not judged" in done.verdict.reason
    assert "468.36" in done.verdict.reason and done.limit_reason == "neither a node class nor a number was given"
    assert [text.split(" was")[0] for text in done.not_judged] == [
        "the bandwidth", "the way of the data", "whether all ranks and nodes ran"]


def test_a_log_alone_still_fails_for_what_it_shows() -> None:
    assert judge((LOGS / "bad-wrong.txt").read_bytes()).verdict.state == "WRONG"
    assert judge(GOOD[:1500]).verdict.state == "INCOMPLETE"
    assert judge(b"").verdict.state == "INCOMPLETE"


@pytest.mark.parametrize(("number", "state"), [(500, "PASS"), (520, "PASS"), (521, "SLOW"), (100, "PASS")])
def test_the_operators_number_is_the_limit(number: float, state: str) -> None:
    done = judge(GOOD, criteria=Criteria(number))
    assert done.verdict.state == state and done.limit_reason == "stated by the operator"


def test_the_class_gives_the_limit_and_the_ranks() -> None:
    hardware, wanted = node_class("h100")
    done = judge(GOOD, hardware=hardware, wanted=wanted)
    assert done.verdict.state == "PASS" and done.verdict.limit is not None
    assert (done.verdict.limit.busbw_gbps, done.verdict.limit.rule) == (480, "table")
    assert not any("bandwidth" in text or "ranks" in text for text in done.not_judged)
    # A node with four GPUs of eight must not be measured by the limit of eight.
    four = dataclasses.replace(hardware, gpus_per_node=16)
    assert judge(GOOD, hardware=four).verdict.state == "INVALID"
    gb200, _ = node_class("gb200")
    assert judge(GOOD, hardware=gb200, nodes=2, mnnvl=True).verdict.state in ("SLOW", "INCOMPLETE")


def test_where_the_class_gives_no_limit_nothing_passes() -> None:
    hardware, _ = node_class("l40s")
    done = judge(GOOD, hardware=hardware, expected=Expected(ranks=8))
    assert done.verdict.state == "INCOMPLETE" and "state one" in done.limit_reason
    groups = (LOGS / "v2.19.6-split-groups.txt").read_bytes()
    assert "several groups" in judge(groups, hardware=node_class("h100")[0]).limit_reason
    lost = b"\n".join(line for line in GOOD.splitlines() if b"Rank" not in line)
    assert "--nodes" in judge(lost, hardware=node_class("h100")[0]).limit_reason


def test_simulated_is_invalid_unless_allowed() -> None:
    log = (LOGS / "bad-simulated.txt").read_bytes()
    assert judge(log, criteria=Criteria(1)).verdict.state == "INVALID"
    allowed = judge(log, criteria=Criteria(1), expected=Expected(allow_simulated=True))
    assert allowed.verdict.label == "PASS (SIMULATED)"


def test_causes_come_with_the_verdict() -> None:
    done = judge(b"n1:1:1 [0] NCCL INFO Using network Socket\n" + GOOD, criteria=Criteria(1))
    assert [cause.id for cause in done.causes] == ["socket"]
    assert judge(GOOD, criteria=Criteria(1)).causes == []


def test_the_modules_report(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"n1:1:1 [0] NCCL INFO Using network Socket\n" + GOOD)
    report = judged(str(path), Criteria(400), Expected())
    assert report.verdict is not None and report.verdict.state == "PASS" and report.path == str(path)
    assert report.as_dict()["causes"][0]["id"] == "socket"
    with pytest.raises(AidcError, match="No such file"):
        judged(str(tmp_path / "none.log"), Criteria(1), Expected())
    with pytest.raises(AidcError, match="more than 0"):
        judged(str(path), Criteria(0), Expected())


def test_a_class_may_be_changed_by_the_site() -> None:
    hardware, wanted = node_class("gb200", ["nics=2", "nic_gbit=200", "adaptive_routing=true", "gdr=no"])
    assert (hardware.nics, hardware.nic_gbit, wanted.hcas) == (2, 200, 2)
    assert wanted == Wanted(True, False, True, None, None, True, 2)
    assert node_class("l40s", ["nics=1"])[1].hcas is None
    assert {name: hardware.name for name, (hardware, _) in CLASSES.items()} == {name: name for name in CLASSES}


@pytest.mark.parametrize(("name", "change", "words"), [
    ("gb300", "nics=1", "got 'gb300', wanted one of a100"), ("gb200", "cats=1", "wanted KEY=VALUE"),
    ("gb200", "nics=x", "wanted a number"), ("gb200", "nic_gbit=nan", "wanted a number"),
    ("gb200", "gdr=maybe", "true or false"),
])
def test_what_is_no_class_is_refused_in_words(name: str, change: str, words: str) -> None:
    with pytest.raises(AidcError, match=words):
        node_class(name, [change])
