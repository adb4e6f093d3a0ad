# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import nvidia_driver

from tests.unit.plugins import gpu_node
from tests.unit.plugins.driver_node import KNOWN_BAD, SETS, VERSION, bare
from tests.unit.plugins.gpu_node import GpuNode


def call(
    node: GpuNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(nvidia_driver, "Machine", lambda tool_timeout_seconds: node.machine())
    given = {"version": VERSION, "package_sets": SETS, "known_bad": KNOWN_BAD, **options}
    with patch_module_args(given), pytest.raises(SystemExit):
        nvidia_driver.main()
    return json.loads(capsys.readouterr().out)


def test_check_mode_then_run_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = bare(tmp_path)
    node.install()
    predicted = call(node, monkeypatch, capsys, _ansible_check_mode=True, _ansible_diff=True)
    real = call(node, monkeypatch, capsys, _ansible_diff=True)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key
    assert real["changed"] is True
    assert call(node, monkeypatch, capsys)["changed"] is False


def test_failure_names_object_got_wanted_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = call(bare(tmp_path), monkeypatch, capsys, version="580")
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].endswith("Nothing was changed.")
    assert all(result["problems"][0][key] for key in ("object", "got", "wanted", "hint"))
    assert "one value" in call(bare(tmp_path / "b"), monkeypatch, capsys, registry_dwords={"A": 1},
                               module_options={"RegistryDwords": "A=2;"})["msg"]


def test_a_node_without_a_gpu_is_asked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = gpu_node.epyc(tmp_path)
    found = call(node, monkeypatch, capsys)
    assert (found["changed"], found["managed"], found["gpus"], found["findings"]) == (False, False, [], [])
    assert (found["reboot_required"], found["reboot_allowed"]) == (False, True)
    assert node.calls == []
