# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import rdma_stack

from tests.unit.plugins.stack_node import StackNode, stack_node

DOCA = {"flavour": "doca_ofed", "doca_version": "3.2.1-044000", "packages": {"Debian": []}, "restart": True}


def call(
    node: StackNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(rdma_stack, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args(options), pytest.raises(SystemExit):
        rdma_stack.main()
    return json.loads(capsys.readouterr().out)


def test_check_mode_then_run_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = stack_node(tmp_path)
    node.install_ofed()
    predicted = call(node, monkeypatch, capsys, **DOCA, _ansible_check_mode=True, _ansible_diff=True)
    real = call(node, monkeypatch, capsys, **DOCA, _ansible_diff=True)
    for key in ("changed", "before", "after", "commands", "diff"):
        assert predicted[key] == real[key]
    assert real["changed"] is True
    assert call(node, monkeypatch, capsys, **DOCA)["changed"] is False


def test_failure_names_object_got_wanted_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = stack_node(tmp_path)
    result = call(node, monkeypatch, capsys, **{**DOCA, "doca_version": "latest"})
    assert result["failed"] is True
    assert result["msg"].endswith("Nothing was changed.")
    assert {key: bool(result["problems"][0][key]) for key in ("object", "got", "wanted", "hint")} == dict.fromkeys(
        ("object", "got", "wanted", "hint"), True)
    assert "a list of package names" in call(node, monkeypatch, capsys, packages={"Debian": "x"})["msg"]
