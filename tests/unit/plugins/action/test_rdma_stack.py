# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.rdma_stack import ActionModule


@pytest.mark.parametrize(("check_mode", "changed", "stored"), [
    (False, True, True), (False, False, True), (True, False, True), (True, True, False),
])
def test_what_is_recorded_is_a_fact(check_mode: bool, changed: bool, stored: bool, tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    action: t.Any = object.__new__(ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=check_mode)
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
    action._execute_module = lambda **arguments: {
        "changed": changed, "commands": [], "steps": [], "before": {}, "after": {}, "stack": {"wanted": "inbox"}}
    result = action.run(task_vars={"inventory_hostname": "h1", "aidc_state_dir": str(tmp_path)})
    path = tmp_path / "rdma_stack" / "h1.json"
    assert (path.exists(), "record_file" in result) == (stored, stored)
    assert not stored or json.loads(path.read_text(encoding="utf-8"))["data"] == {"stack": {"wanted": "inbox"}}
