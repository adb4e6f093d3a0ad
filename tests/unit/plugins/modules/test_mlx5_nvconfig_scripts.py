# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against the command scripts of mlx5_nvconfig.yml."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml

from tests.unit.plugins.nvconfig_script import MEMORY, Script, call, node

SCRIPTS = yaml.safe_load(Path(__file__).with_name("mlx5_nvconfig.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", SCRIPTS, ids=[entry["id"] for entry in SCRIPTS])
def test_script(entry: dict[str, t.Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                capsys: pytest.CaptureFixture[str]) -> None:
    root = node(tmp_path)
    script = Script(entry["run"])
    result = call(root, script, monkeypatch, capsys, **entry["options"], _ansible_diff=True,
                  _ansible_check_mode=entry.get("check", False))
    assert script.steps == [], "not called"
    for text in entry.get("msg", []):
        assert text in result["msg"]
    assert bool(result.get("failed")) is ("msg" in entry)
    assert {key: result[key] for key in entry.get("result", {})} == entry.get("result", {})
    remembered = ["write", "/" + MEMORY] in result["commands"] and not entry.get("check")
    assert (root / MEMORY).exists() is remembered
    assert {"changed", "commands"} <= set(result)


def test_every_kind_of_script_is_there() -> None:
    assert len(SCRIPTS) >= 20 and len({entry["id"] for entry in SCRIPTS}) == len(SCRIPTS)
    assert all(("msg" in entry) != ("result" in entry) for entry in SCRIPTS)
