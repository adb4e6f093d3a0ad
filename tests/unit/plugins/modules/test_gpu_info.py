# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import gpu_info

from tests.unit.plugins.gpu_node import GpuNode, epyc, gb200


def call(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(gpu_info, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        gpu_info.main()
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = call(gb200(tmp_path), monkeypatch, capsys, rails=["0002:03:00.0", "0000:03:00.0"],
                 **{"class": {"gpu_count": 8, "module_parameters": {"NVreg_CreateImexChannel0": True}}})
    assert found["changed"] is False
    assert [one["object"] for one in found["findings"]] == ["GPUs on the PCI bus", "NVreg_CreateImexChannel0"]
    assert found["gpus"][0]["nearest_nic"] == "0002:03:00.0", "rails in their order"


def test_a_node_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                              capsys: pytest.CaptureFixture[str]) -> None:
    found = call(epyc(tmp_path), monkeypatch, capsys, **{"class": {"gpu_count": 0}})
    assert (found["gpus"], found["findings"], found["problems"]) == ([], [], [])
