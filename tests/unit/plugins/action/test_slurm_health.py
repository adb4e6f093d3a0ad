# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health program's bytes go to a host only if its module asks for them."""
from __future__ import annotations

import hashlib
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.slurm_health import ActionModule
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import boot_archive, packing

DONE = {"changed": True, "before": {}, "after": {}, "commands": [], "steps": [], "diff": {}, "health": None}


@pytest.mark.parametrize("asks", [False, True])
def test_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asks: bool) -> None:
    answers: list[dict[str, t.Any]] = [{"changed": False, "needs_source": True}, dict(DONE)] if asks else [dict(DONE)]
    asked: list[dict[str, t.Any]] = []
    sent: list[tuple[bytes, str]] = []
    action: t.Any = object.__new__(ActionModule)
    action._task = SimpleNamespace(args={"gpus": 4}, check_mode=False)
    action._templar = SimpleNamespace(template=lambda value: value)
    action._connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None, join_path=lambda *parts: "/".join(parts)))
    monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})

    def execute(**given: t.Any) -> dict[str, t.Any]:
        asked.append(given["module_args"])
        return answers.pop(0)

    action._execute_module = execute
    action._make_tmp_path = lambda: "/tmp/of-the-task"
    action._transfer_file = lambda local, remote: sent.append((Path(local).read_bytes(), remote))
    action._fixup_perms2 = action._remove_tmp_path = lambda paths: None
    result = action.run(task_vars={"inventory_hostname": "h1", "aidc_state_dir": str(tmp_path)})
    data = boot_archive.build(packing.CODE, boot_archive.HEALTH_START, boot_archive.HEALTH_PACKAGE)
    assert result["changed"] and asked[0] == {"gpus": 4, "digest": hashlib.sha256(data).hexdigest()}
    assert sent == ([(data, "/tmp/of-the-task/aidc-health.pyz")] if asks else [])
    assert Path(result["record_file"]).parent.name == "slurm_health"
