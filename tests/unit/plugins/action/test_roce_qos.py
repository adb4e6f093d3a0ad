# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.roce_qos import ActionModule

RESULT = {"changed": True, "before": [{"pfc": []}], "after": [{"pfc": [3]}], "commands": [["dcb"]], "backend": "dcb",
          "unsupported": [], "findings": [], "diff": {}}


@pytest.mark.parametrize(("check_mode", "ports"), [(False, [{"pfc": [3]}]), (True, [{"pfc": []}])])
def test_the_record_holds_what_is_and_not_what_would_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, check_mode: bool, ports: list[dict[str, t.Any]]
) -> None:
    action: t.Any = object.__new__(ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=check_mode)
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
    action._execute_module = lambda **arguments: dict(RESULT)
    found = action.run(task_vars={"inventory_hostname": "h1", "aidc_state_dir": str(tmp_path)})
    kept = json.loads(Path(found["record_file"]).read_text(encoding="utf-8"))
    assert kept["data"] == {"ports": ports, "backend": "dcb", "unsupported": [], "findings": []}
    assert found["commands"] == [["dcb"]]
