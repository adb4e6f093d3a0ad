# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.model import (
    MEMORY_FILE,
    Node,
    Reading,
    Request,
    Step,
    make_want,
)

TABLE = "Device type: X\nConfigurations: Default Current Next Boot\n A 1 1 1\n"
A, B = "0000:03:00.0", "0002:03:00.0"


class Tools:
    """Answers by program; counts the calls."""

    def __init__(self, **answers: Result) -> None:
        self.answers = answers
        self.calls: list[list[str]] = []

    def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        self.calls.append(list(argv))
        return self.answers.get(argv[0], Result(tuple(argv), "missing"))


def ok(text: str) -> Result:
    return Result((), "ok", 0, text)


def request(*pcis: str, tool: str = "auto") -> Request:
    return Request(tuple(make_want(pci, {"A": 1}) for pci in pcis), tool=tool)


def test_the_first_tool_that_is_there_is_used_for_all(tmp_path: Path) -> None:
    both = Tools(mlxconfig=ok(TABLE), mstconfig=ok(TABLE))
    assert io.gather(Machine(tmp_path, both), request(A, B)).tool == "mlxconfig"
    assert [call[0] for call in both.calls] == ["mlxconfig", "mlxconfig"]
    one = Tools(mstconfig=ok(TABLE))
    assert io.gather(Machine(tmp_path, one), request(A)).tool == "mstconfig"
    with pytest.raises(AidcError, match="mlxconfig: got the program is not installed"):
        io.gather(Machine(tmp_path, one), request(A, tool="mlxconfig"))


def test_a_broken_tool_is_not_replaced_by_the_other_one(tmp_path: Path) -> None:
    tools = Tools(mlxconfig=Result((), "failed", 3, "-E- Failed to open the device"), mstconfig=ok(TABLE))
    with pytest.raises(AidcError, match="exit status 3: Failed to open the device"):
        io.gather(Machine(tmp_path, tools), request(A))
    assert len(tools.calls) == 1


def test_all_broken_devices_are_named(tmp_path: Path) -> None:
    with pytest.raises(AidcError) as caught:
        io.gather(Machine(tmp_path, Tools(mlxconfig=ok("garbage"))), request(A, B))
    assert [problem.object for problem in caught.value.problems] == [f"mlxconfig -d {A}", f"mlxconfig -d {B}"]


def test_names_that_are_not_known_cost_one_query_each_and_the_search_ends(tmp_path: Path) -> None:
    class Nothing(Tools):
        def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
            self.calls.append(list(argv))
            return Result(tuple(argv), "failed", 3, f"-E- Unknown Parameter: {argv[-1]}")

    tools = Nothing()
    want = make_want(A, {"A": 1, "B": 1, "C": 1})
    reading = io.read_device(Machine(tmp_path, tools), "mstconfig", want)
    assert isinstance(reading, Reading) and reading.unknown == ("C", "B", "A") and reading.rows == {}
    assert len(tools.calls) == 3


def test_one_question_about_resets_per_kind_of_card(tmp_path: Path) -> None:
    tools = Tools(mstfwreset=ok("Reset-levels:\n3: x -Supported\n"))
    readings = {pci: Reading(pci, kind) for pci, kind in (("a", "CX7"), ("b", "CX7"), ("c", "BF3"))}
    node = io.ask_resets(Machine(tmp_path, tools), Node("mstconfig", readings), ["a", "b", "c"])
    assert [call[2] for call in tools.calls] == ["a", "c"]
    assert {reading.reset_levels for reading in node.readings.values()} == {frozenset({3})}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"a": {"b": {"wanted": 1}}}', '{"a": {"b": []}}'])
def test_a_broken_memory_tells_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / MEMORY_FILE.lstrip("/")
    assert io.read_memory(Machine(tmp_path)) == {}
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    assert io.read_memory(Machine(tmp_path)) == {}


def test_a_memory_that_cannot_be_written_names_what_was_done(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file", encoding="utf-8")
    steps = [Step(("mstconfig", "-y", "-d", A, "set", "A=2"), "x", A), Step(("write", MEMORY_FILE), "x", None, "{}")]
    machine = Machine(tmp_path, Tools(mstconfig=ok("Done!")))
    node = Node("mstconfig", {A: Reading(A)})
    with pytest.raises(AidcError, match=f"{MEMORY_FILE}: .*Done before the error: mstconfig -y -d {A} set A=2"):
        io.apply(machine, request(A), node, steps)
    assert io.apply(machine, request(A), node, steps[:1]) == frozenset()
    told = dataclasses.replace(machine, run=Tools(mstconfig=ok("-I- Please power cycle machine")))
    assert io.apply(told, request(A), node, steps[:1]) == {A}
