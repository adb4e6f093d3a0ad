# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.modules import mlx5_info

from tests.unit.plugins.fake import FakeNode


def call(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(mlx5_info, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        mlx5_info.main()
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_result(node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(node, monkeypatch, capsys, rails=["0002:03:00.0", "0000:03:00.0"])
    assert result["changed"] is False
    assert result["problems"] == []
    assert [(device["pci"], device["rail"]) for device in result["devices"]] == [
        ("0000:03:00.0", 1), ("0002:03:00.0", 0)]
    port = result["devices"][0]["ports"][0]
    assert (port["netdev"], port["mtu_bytes"], port["rdma_mtu_bytes"]) == ("rail0", 1500, 1024)
    assert port["gids"][3] == {"index": 3, "gid": "0000:0000:0000:0000:0000:ffff:c633:6401", "type": "RoCE v2",
                               "ndev": "rail0", "family": "ipv4", "address": "198.51.100.1"}


def test_a_missing_tool_is_a_problem_and_no_failure(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.override[("ibv_devinfo",)] = lambda argv: Result(argv, "missing")
    result = call(node, monkeypatch, capsys)
    assert result["devices"][0]["ports"][0]["rdma_mtu_bytes"] is None
    assert result["problems"][0]["object"] == "ibv_devinfo"
