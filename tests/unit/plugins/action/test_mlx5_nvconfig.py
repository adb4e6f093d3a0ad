# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.mlx5_nvconfig import ActionModule

DEVICE = {"pci": "0000:03:00.0", "parameters": [
    {"name": "LINK_TYPE_P1", "wanted": "ETH", "next": "IB(1)", "state": "pending"},
    {"name": "SRIOV_EN", "wanted": "True", "next": "True", "state": "set"},
    {"name": "NO_SUCH", "wanted": "1", "next": None, "state": "unknown"}]}
BEFORE = {"pci": "0000:03:00.0", "parameters": {"LINK_TYPE_P1": "IB(1)", "SRIOV_EN": "True", "NO_SUCH": None}}


@pytest.mark.parametrize(("check_mode", "commands", "state"), [
    (False, [["mstconfig"]], "pending"), (False, [], "pending"), (True, [], "pending"),
    (True, [["mstconfig"]], "differs"),
])
def test_what_is_recorded_is_a_fact(check_mode: bool, commands: list[t.Any], state: str, tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Check mode would write the value, and has not."""
    action: t.Any = object.__new__(ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=check_mode)
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
    asked: list[str] = []

    def execute(**arguments: t.Any) -> dict[str, t.Any]:
        asked.append(arguments["module_name"])
        return {"changed": bool(commands), "commands": commands, "before": [BEFORE], "devices": [DEVICE]}

    action._execute_module = execute
    result = action.run(task_vars={"inventory_hostname": "h1", "aidc_state_dir": str(tmp_path)})
    path = tmp_path / "mlx5_nvconfig" / "h1.json"
    assert asked == ["aidc.gpu_cluster.mlx5_nvconfig"]
    assert result["record_file"] == str(path) and result["devices"] == [DEVICE]
    (device,) = json.loads(path.read_text(encoding="utf-8"))["data"]["devices"]
    assert [one["state"] for one in device["parameters"]] == [state, "set", "unknown"]
