# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import imex_domain

from tests.unit.plugins.imex_node import ImexNode, nodes, settled, tray


def call(
    node: ImexNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: t.Any
) -> t.Any:
    monkeypatch.setattr(imex_domain, "Machine", lambda tool_timeout_seconds: node.machine())
    with patch_module_args({"domain": "nvl1", **options}), pytest.raises(SystemExit):
        imex_domain.main()
    return json.loads(capsys.readouterr().out)


def test_check_mode_then_run_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = tray(tmp_path, 1)
    given = {"nodes": ["192.0.2.1"], "may_join": True, "config": {"LOG_LEVEL": 3}}
    predicted = call(node, monkeypatch, capsys, _ansible_check_mode=True, _ansible_diff=True, **given)
    real = call(node, monkeypatch, capsys, _ansible_diff=True, **given)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key
    assert real["changed"] is True and real["after"]["config"]["LOG_LEVEL"] == "3"
    assert call(node, monkeypatch, capsys, **given)["changed"] is False


def test_failure_names_object_got_wanted_and_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = call(tray(tmp_path, 1), monkeypatch, capsys, nodes=["192.0.2.7"])
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].endswith("Nothing was changed.")
    assert all(result["problems"][0][key] for key in ("object", "got", "wanted", "hint"))


def test_a_domain_that_is_not_whole_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trays = settled(tmp_path, 2)
    given = {"nodes": nodes(trays), "state": "ready", "wait_seconds": 0}
    assert call(trays[0], monkeypatch, capsys, **given)["ready"] is True
    trays[1].change(active="inactive")
    found = call(trays[0], monkeypatch, capsys, **given)
    assert (found["ready"], found["changed"], found.get("failed")) == (False, False, None)
    assert all(found["findings"][0][key] for key in ("object", "got", "wanted", "hint"))
