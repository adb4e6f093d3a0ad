# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rounds without a lab: what is set is undone, and what is left is told."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults import evaluate, report, rows
from tests.faults.detect import Finding, Round
from tests.faults.evaluate import Evaluator, Result
from tests.faults.places import Host, Rail
from tests.faults.steps import StepError

HOST = Host("l1", "l40s", "networkd", "leaf2", (Rail(0, "0000:41:00.0", "en0", "mlx5_0", "192.0.2.1", 24),
                                                 Rail(1, "0000:c1:00.0", "en1", "mlx5_1", "198.51.100.1", 24)), [])
ROW = rows.row("x", {
    "text": "a", "fact": "b", "set": [{"host": "break {netdev}"}], "undo": [{"host": "mend {netdev}"}],
    "detect": [{"run": "roce_gid", "says": "{pci}"}],
    "twin": {"text": "c", "set": [{"host": "wave"}], "undo": [{"host": "rest"}]}})


class Machine:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.left: dict[str, str] = {}

    def shell(self, host: str, text: str) -> str:
        if text == "burst":
            raise StepError("l1: burst")
        self.done.append(f"{host}: {text}")
        return ""

    def picture(self, host: str) -> dict[str, str]:
        return {"a": "1", **(self.left if self.done else {})}


class Ansible:
    def __init__(self, findings: list[Finding]) -> None:
        self.findings, self.asked = findings, []  # type: ignore[var-annotated]

    def detect(self, asked: Round) -> list[Finding]:
        self.asked.append(asked)
        # The twin's round finds nothing.
        return self.findings if len(self.asked) == 1 else []


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "CLEAN_SECONDS", 0.0)


def evaluator(findings: list[Finding], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.setattr(evaluate.places, "read", lambda *_arguments: {"l1": HOST})
    made: Any = Evaluator(None, Path("/x"), "", Path("/y"), say=lambda _text: None)  # type: ignore[arg-type]
    made.machine, made.ansible = Machine(), Ansible(findings)
    return made, made.machine


RIGHT = [Finding("l1", "roce_gid", "0000:c1:00.0: got none")]


def test_a_fault_that_is_found_and_its_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    made, machine = evaluator(RIGHT, monkeypatch)
    results = made.run({"x": ROW}, {})
    assert [(one.phase, one.verdict, one.why) for one in results] == [
        ("fault", "detected", []), ("twin", "no finding", [])]
    assert machine.done == ["l1: break en1", "l1: mend en1", "l1: wave", "l1: rest"]
    assert made.ansible.asked[0].runs == {"roce_gid": ["l1"]}


def test_a_detector_that_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _machine = evaluator([], monkeypatch)
    fault, _twin = made.run({"x": ROW}, {})
    assert (fault.verdict, fault.good) == ("FAILED", False) and "got no finding" in fault.why[0]


def test_a_detector_that_cannot_run_and_the_undo_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made, machine = evaluator(RIGHT, monkeypatch)

    def burst(_asked: Round) -> list[Finding]:
        raise RuntimeError("no verdict")

    made.ansible.detect = burst
    fault, twin = made.run({"x": ROW}, {})
    assert fault.why == twin.why == ["cannot be detected: no verdict"]
    assert machine.done == ["l1: break en1", "l1: mend en1", "l1: wave", "l1: rest"]


def test_what_an_undo_leaves_and_what_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    made, machine = evaluator(RIGHT, monkeypatch)
    machine.left = {"b": "2"}
    fault, twin = made.run({"x": ROW}, {})
    assert fault.why == twin.why == ["left on l1: b: not there -> 2"]
    made, machine = evaluator(RIGHT, monkeypatch)
    burst = replace(ROW, fault=replace(ROW.fault, set=({"host": "burst"},)))
    fault, _twin = made.run({"x": burst}, {})
    assert fault.why == ["cannot be set: l1: burst"] and machine.done[0] == "l1: mend en1", "undone all the same"


def test_each_detector_of_a_row_must_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    both = replace(ROW, detect=(*ROW.detect, rows.Detector("audit", ("rule",))))
    made, _machine = evaluator(RIGHT, monkeypatch)
    fault, _twin = made.run({"x": both}, {})
    assert fault.verdict == "FAILED" and fault.why[0].startswith("audit: wanted 'rule'; got no finding")


def test_the_report_counts_and_names() -> None:
    results = [Result("x", "fault", "l1", "FAILED", 1.25, ["why"], ["roce_gid"]),
               Result("y", "twin", "l1", "no finding")]
    text = report.text(results, 61)
    assert "x (fault) on l1: why" in text and "y    twin   l1    -" in text
    assert text.endswith("1 FAILED, 1 no finding; 61 s in all")
    assert report.data(results)[0]["seconds"] == 1.2
