# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.modules import path_probe


@pytest.mark.parametrize(("state", "rc", "code"), [("ok", 0, 0), ("failed", 1, 0), ("missing", None, 1)])
def test_result(
    state: t.Any, rc: int | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(run=lambda argv, timeout_seconds: Result(tuple(argv), state, rc))
    monkeypatch.setattr(path_probe, "Machine", lambda: machine)
    target = {"interface": "ens1", "address": "198.51.100.2", "size_bytes": 4200, "peer": "node2"}
    with patch_module_args({"targets": [target]}), pytest.raises(SystemExit) as ended:
        path_probe.main()
    assert ended.value.code == code
    result = json.loads(capsys.readouterr().out)
    assert result["changed"] is False
    if code:
        assert "iputils" in result["msg"]
        return
    assert result["too_small"] == (0 if state == "ok" else 1)
    assert result["paths"][0]["passed"] is (state == "ok") and result["paths"][0]["peer"] == "node2"
