# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import rail_network

from tests.unit.plugins.rail_node import RailNode, rail_node

RAILS = [{"rail": 0, "pci": "0000:03:00.0", "address": "198.51.100.1/24"}]


def call(
    node: RailNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(rail_network, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit):
        rail_network.main()
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("owner", ["networkd", "netplan", "networkmanager"])
def test_check_mode_then_run_then_nothing(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = rail_node(tmp_path, owner)
    predicted = call(node, monkeypatch, capsys, rails=RAILS, _ansible_check_mode=True, _ansible_diff=True)
    assert node.live["rail0"].addresses == []
    real = call(node, monkeypatch, capsys, rails=RAILS, _ansible_diff=True)
    assert node.live["rail0"].addresses == ["198.51.100.1/24"]
    for key in ("changed", "before", "after", "commands", "diff"):
        assert predicted[key] == real[key]
    assert real["changed"] is True
    assert call(node, monkeypatch, capsys, rails=RAILS)["changed"] is False


def test_failure_names_object_got_wanted_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = rail_node(tmp_path, "networkd")
    result = call(node, monkeypatch, capsys, rails=[{**RAILS[0], "pci": "0000:99:00.0"}])
    assert result["failed"] is True
    assert result["msg"].endswith("Nothing was changed.")
    assert result["problems"][0]["got"] == "no such PCI function"
    assert "an address with its length" in call(node, monkeypatch, capsys, rails=[{**RAILS[0], "address": "x"}])["msg"]
