# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.lock import host_lock
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.model import Record
from ansible_collections.aidc.gpu_cluster.plugins.modules import armed_revert

from tests.unit.plugins.fake import FakeNode, ok


@pytest.fixture
def call(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> t.Callable[..., t.Any]:
    node.override[("systemctl", "stop")] = lambda argv: ok()
    record = Record("roce_qos-1", "roce_qos", "d", 60, 60.0, timer="systemd", commands=(("dcb", "x"),))
    io._save(node.machine(), record)
    io._save(node.machine(), dataclasses.replace(record, id="rail_network-2", module="rail_network", state="undone"))

    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(armed_revert, "Machine", node.machine)
        with patch_module_args(options), pytest.raises(SystemExit):
            armed_revert.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_status_then_check_mode_then_cancelled(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    status = call()
    assert [(entry["id"], entry["state"]) for entry in status["before"]] == [
        ("rail_network-2", "undone"), ("roce_qos-1", "armed")]
    assert status["changed"] is False and status["before"] == status["after"]
    predicted = call(state="cancelled", module="roce_qos", _ansible_check_mode=True)
    real = call(state="cancelled", module="roce_qos")
    assert (predicted["changed"], predicted["commands"]) == (real["changed"], real["commands"]) == (
        True, [["cancel", "roce_qos-1"]])
    assert ("systemctl", "stop", "aidc-revert-roce_qos-1.timer") in node.calls
    assert call(state="cancelled")["changed"] is False
    # The note is the next run's to read.
    assert [entry["id"] for entry in call()["before"]] == ["rail_network-2"]


def test_a_held_lock_is_named(call: t.Callable[..., t.Any], node: FakeNode) -> None:
    with host_lock(node.machine(), "rail_network"):
        found = call(state="cancelled")
    assert found["failed"] is True and "(rail_network)" in found["msg"] and "Nothing was changed." in found["msg"]
