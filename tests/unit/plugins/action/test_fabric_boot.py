# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot tool's bytes go to a host only if its module asks for them."""
from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.fabric_boot import ActionModule
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import boot_archive, packing

DONE = {"changed": True, "before": {}, "after": {}, "commands": [["x"]], "steps": [], "diff": {}, "enabled": True,
        "drift": [], "drift_why": None}
ASK = {"changed": False, "needs_source": True, "commands": []}


class Run:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: dict[str, t.Any]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, t.Any]] = []
        self.sent: list[tuple[bytes, str]] = []
        self.removed: list[str] = []
        action: t.Any = object.__new__(ActionModule)
        action._task = SimpleNamespace(args={"python": "/usr/bin/python3"}, check_mode=False)
        action._templar = SimpleNamespace(template=lambda value: value)
        shell = SimpleNamespace(tmpdir=None, join_path=lambda *parts: "/".join(parts))
        action._connection = SimpleNamespace(_shell=shell)
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        action._execute_module = self._execute
        action._make_tmp_path = lambda: "/tmp/of-the-task"
        action._transfer_file = lambda local, remote: self.sent.append((Path(local).read_bytes(), remote))
        action._fixup_perms2 = lambda paths: None
        action._remove_tmp_path = self.removed.append
        self.action = action

    def _execute(self, **arguments: t.Any) -> dict[str, t.Any]:
        self.asked.append(arguments["module_args"])
        return dict(self.answers.pop(0))

    def __call__(self, **variables: t.Any) -> dict[str, t.Any]:
        return dict(self.action.run(task_vars={"inventory_hostname": "h1", **variables}))


def test_one_call_where_the_tool_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Run(monkeypatch, {**DONE, "changed": False})
    result = run(aidc_state_dir=str(tmp_path))
    data = boot_archive.build(packing.CODE)
    assert run.asked == [{"python": "/usr/bin/python3", "digest": hashlib.sha256(data).hexdigest()}]
    assert run.sent == [] and run.removed == []
    kept = json.loads(Path(result["record_file"]).read_text(encoding="utf-8"))
    assert (kept["kind"], kept["data"]) == ("fabric_boot", {"enabled": True, "drift": [], "drift_why": None})


def test_the_bytes_are_sent_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, ASK, DONE)
    assert run()["commands"] == [["x"]]
    assert run.asked[1]["source"] == "/tmp/of-the-task/aidc-fabric.pyz"
    assert run.sent == [(boot_archive.build(packing.CODE), run.asked[1]["source"])] and len(run.removed) == 1


def test_what_is_seen_in_check_mode_is_a_fact_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Run(monkeypatch, {**DONE, "enabled": False, "drift": None, "drift_why": "no tool"})
    run.action._task.check_mode = True
    kept = json.loads(Path(run(aidc_state_dir=str(tmp_path))["record_file"]).read_text(encoding="utf-8"))
    assert kept["data"] == {"enabled": False, "drift": None, "drift_why": "no tool"}


def test_a_tool_that_cannot_be_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*names: t.Any) -> t.NoReturn:
        raise boot_archive.ArchiveError("_x imports ansible")

    monkeypatch.setattr(packing, "packed", broken)
    with pytest.raises(AnsibleActionFail, match="aidc-fabric.pyz cannot be packed: _x imports ansible"):
        Run(monkeypatch)()
