# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import host_info

from tests.unit.plugins.host_node import HostNode, gb200


def call(
    node: HostNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(host_info, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        host_info.main()
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = call(gb200(tmp_path), monkeypatch, capsys, paths=["/var"])
    assert found["changed"] is False
    assert [disk["path"] for disk in found["disks"]] == ["/var"]
    assert len(found["gpus"]) == 4
    assert found["python"]["executable"] and found["architecture"]
