# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import roce_gid

from tests.unit.plugins.fake import FakeNode


def call(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(roce_gid, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit):
        roce_gid.main()
    return json.loads(capsys.readouterr().out)


def test_result(node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"ports": [{"pci": "0000:03:00.0"}], "subnets": ["198.51.100.0/24"]}
    kept = call(node, monkeypatch, capsys, **options)
    assert (kept["changed"], kept["commands"]) == (True, [["write", "/etc/aidc/intent.json"]])
    assert json.loads(node.get("/etc/aidc/intent.json"))["sections"]["roce_gid"]["subnets"] == ["198.51.100.0/24"]
    # What a run in check mode may lack of others is no other intent.
    result = call(node, monkeypatch, capsys, missing="report", _ansible_check_mode=True, **options)
    assert (result["changed"], result["commands"]) == (False, [])
    assert result["ports"] == [{
        "pci": "0000:03:00.0", "rdma_device": "mlx5_0", "port": 1, "netdev": "rail0",
        "gid": "0000:0000:0000:0000:0000:ffff:c633:6401", "index": 3, "type": "RoCE v2", "family": "ipv4",
        "address": "198.51.100.1", "roce_mode": None, "roce_mode_why": None}]


def test_failure(node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(node, monkeypatch, capsys, ports=[{"pci": "0000:03:00.0"}], subnets=["192.0.2.0/24"], wait_seconds=0)
    assert result["failed"] is True
    assert result["msg"].endswith("Nothing was changed.")
    assert result["problems"][0]["wanted"] == "one RoCE v2 GID of an ipv4 address in 192.0.2.0/24"
