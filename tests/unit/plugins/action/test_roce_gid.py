# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.roce_gid import ActionModule


def run(monkeypatch: pytest.MonkeyPatch, index: int, **variables: t.Any) -> t.Any:
    action: t.Any = object.__new__(ActionModule)
    action._task = SimpleNamespace(args={})
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
    port = {"pci": "0000:03:00.0", "gid": "g", "index": index, "netdev": "rail0"}
    action._execute_module = lambda **arguments: {"changed": False, "ports": [port], "problems": []}
    return action.run(task_vars={"inventory_hostname": "h1", **variables})


def test_an_index_that_moved_since_the_last_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state = str(tmp_path)
    assert run(monkeypatch, 3, aidc_state_dir=state)["moved"] == []
    assert run(monkeypatch, 3, aidc_state_dir=state)["moved"] == []
    moved = run(monkeypatch, 5, aidc_state_dir=state)["moved"]
    assert [(entry["before"]["index"], entry["now"]["index"]) for entry in moved] == [(3, 5)]
    assert run(monkeypatch, 5, aidc_state_dir=state)["moved"] == []
    record = json.loads((tmp_path / "roce_gid" / "h1.json").read_text(encoding="utf-8"))
    assert record["data"]["ports"][0]["index"] == 5


def test_without_a_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, 3)
    assert (result["moved"], "record_file" in result) == ([], False)


def test_a_damaged_record_is_named_before_the_host_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "roce_gid").mkdir()
    (tmp_path / "roce_gid" / "h1.json").write_text("{", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match=r"roce_gid/h1\.json: .*; remove it and run again"):
        run(monkeypatch, 3, aidc_state_dir=str(tmp_path))
