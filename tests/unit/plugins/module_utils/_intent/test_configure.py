# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import GOOD_PATH, PATH, Intent

from tests.unit.plugins.fake import FakeNode

OLD = Intent({"roce_qos": {"ports": [{"pci": "0000:03:00.0"}], "dscp": 26}}, None, "2026-01-02T03:04:05Z")
NEW = OLD.with_section("roce_qos", {"ports": [{"pci": "0000:03:00.0"}], "dscp": 24}, "2026-01-03T03:04:05Z")


def call(node: FakeNode, state: str, check_mode: bool = False) -> dict[str, t.Any]:
    return configure(node.machine(), state, "run-7", check_mode)


def both(node: FakeNode, state: str) -> dict[str, t.Any]:
    """Check mode, which writes nothing, and the run, which says the same; a second run changes nothing."""
    files = node.files()
    predicted = call(node, state, check_mode=True)
    assert node.files() == files
    real = call(node, state)
    for key in ("changed", "before", "after", "commands", "diff", "differences"):
        assert predicted[key] == real[key], key
    assert call(node, state)["commands"] == []
    return real


def test_a_pass_keeps_the_intent_as_good(node: FakeNode) -> None:
    node.put(PATH, OLD.text())
    assert both(node, "good")["commands"] == [["write", GOOD_PATH]]
    good = io.read(node.machine(), GOOD_PATH)
    assert good is not None and (good.sections, good.run_id) == (OLD.sections, "run-7")


def test_what_was_changed_since_and_back(node: FakeNode) -> None:
    node.put(PATH, NEW.text())
    node.put(GOOD_PATH, OLD.text())
    read = both(node, "read")
    assert read["words"] == ["roce_qos: dscp was 26, is 24"] and read["good_time"] == OLD.time
    restored = both(node, "restored")
    assert restored["commands"] == [["write", PATH]] and restored["differences"] == []
    assert (restored["before"]["intent"], restored["intent"]) == (NEW.sections, OLD.sections)
    now = io.read(node.machine())
    assert now is not None and now.sections == OLD.sections
    assert io.read(node.machine(), GOOD_PATH) == OLD


def test_a_newer_pass_replaces_the_good_one(node: FakeNode) -> None:
    node.put(PATH, NEW.text())
    node.put(GOOD_PATH, OLD.text())
    assert both(node, "good")["words"] == []


def test_a_host_without_a_pass(node: FakeNode) -> None:
    node.put(PATH, NEW.text())
    assert both(node, "read")["good"] is None
    for check_mode in (True, False):
        with pytest.raises(AidcError, match="wanted the intent of the last pass"):
            call(node, "restored", check_mode)


def test_a_host_without_an_intent(node: FakeNode) -> None:
    assert both(node, "good")["commands"] == []
    node.put(GOOD_PATH, OLD.text())
    assert both(node, "read")["differences"] == []
    assert both(node, "restored")["commands"] == [["write", PATH]]


@pytest.mark.parametrize("path", [PATH, GOOD_PATH])
def test_a_cut_file_is_an_error_in_each_state(node: FakeNode, path: str) -> None:
    node.put(PATH, OLD.text())
    node.put(GOOD_PATH, NEW.text())
    node.put(path, "{")
    for state in ("read", "good", "restored"):
        with pytest.raises(AidcError, match="Nothing was changed"):
            call(node, state)
