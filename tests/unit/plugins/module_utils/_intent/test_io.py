# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError, Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.lock import LOCK_FILE, host_lock
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import PATH, Intent

from tests.unit.plugins.fake import FakeNode

PARAMS: dict[str, t.Any] = {"ports": [{"pci": "0000:03:00.0"}], "dscp": 26, "persistent": True}
WRITE = ["write", PATH]


class Module:
    """A module that has ``commands`` to run, and notes how it was called."""

    def __init__(self, *commands: list[str], **more: t.Any) -> None:
        self.commands, self.more = list(commands), more
        self.locked: list[bool] = []

    def __call__(self, machine: Machine) -> dict[str, t.Any]:
        self.locked.append(machine.locked)
        with host_lock(machine, "inner", wait_seconds=0):
            pass
        return {"changed": bool(self.commands), "before": [], "after": [], "commands": self.commands, "steps": [],
                "diff": {"before": {}, "after": {}}, **self.more}


def run(node: FakeNode, module: Module, check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    return io.recorded(node.machine(), "roce_qos", {**PARAMS, **params}, check_mode, module, {"pci": None})


def test_check_mode_says_what_the_run_does_and_a_second_run_does_nothing(node: FakeNode) -> None:
    predicted = run(node, Module(["dcb"]), check_mode=True)
    assert node.files().keys() == {path for path in node.files() if "aidc" not in path}
    real = run(node, Module(["dcb"]))
    assert predicted == real
    assert (real["changed"], real["commands"]) == (True, [["dcb"], WRITE])
    assert real["steps"] == [{"pci": None, "command": WRITE, "disruptive": "none",
                              "why": "the intent has no such section"}]
    assert real["diff"] == {"before": {"intent": None}, "after": {"intent": PARAMS}}
    kept = json.loads(node.get(PATH))
    assert (kept["schema_version"], kept["sections"]) == (1, {"roce_qos": PARAMS})
    assert (node.root / PATH[1:]).stat().st_mode & 0o777 == 0o644
    again = run(node, Module())
    assert (again["changed"], again["commands"]) == (False, [])
    assert json.loads(node.get(PATH)) == kept


def test_other_options_are_a_change_although_the_ports_are_as_wanted(node: FakeNode) -> None:
    run(node, Module())
    changed = run(node, Module(), dscp=24)
    assert changed["commands"] == [WRITE] and changed["steps"][0]["why"] == "the intent says something else"
    assert io.read(node.machine()) == Intent({"roce_qos": {**PARAMS, "dscp": 24}}, None, json.loads(
        node.get(PATH))["time"])


def test_the_lock_is_held_around_both(node: FakeNode) -> None:
    module = Module(["dcb"])
    run(node, module)
    assert module.locked == [True] and node.get(LOCK_FILE) == ""
    run(node, module, check_mode=True)
    assert module.locked == [True, False]


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 2}'])
@pytest.mark.parametrize("check_mode", [True, False])
def test_a_file_that_cannot_be_read_stops_the_call_before_it_writes(
    node: FakeNode, text: str, check_mode: bool
) -> None:
    node.put(PATH, text)
    module = Module(["dcb"])
    with pytest.raises(AidcError, match="Nothing was changed"):
        run(node, module, check_mode)
    assert module.locked == [] and node.get(PATH) == text


def test_not_persistent_leaves_the_file_alone(node: FakeNode) -> None:
    node.put(PATH, "{")
    assert run(node, Module(["dcb"]), persistent=False)["commands"] == [["dcb"]]
    assert node.get(PATH) == "{"


def test_what_was_deferred_is_not_recorded(node: FakeNode) -> None:
    assert run(node, Module(deferred=[{"netdev": "rail0"}]))["commands"] == []
    assert not (node.root / PATH[1:]).exists()


def test_an_error_of_the_call_records_nothing(node: FakeNode) -> None:
    def call(machine: Machine) -> dict[str, t.Any]:
        raise AidcError([Problem("a", "b", "c")], [["dcb"]])

    with pytest.raises(AidcError):
        io.recorded(node.machine(), "roce_qos", PARAMS, False, call, {})
    assert not (node.root / PATH[1:]).exists()


def test_a_disk_that_is_full_is_told_with_what_was_done(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: t.Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(io, "write_atomic", full)
    with pytest.raises(AidcError) as caught:
        run(node, Module(["dcb", "x"]))
    assert caught.value.done == [["dcb", "x"]] and "No space left on device" in str(caught.value)
    assert "the disk not full" in str(caught.value)


def test_a_file_that_may_not_be_read(node: FakeNode) -> None:
    (node.root / PATH[1:]).mkdir(parents=True)
    with pytest.raises(AidcError, match="Is a directory"):
        io.read(node.machine())
