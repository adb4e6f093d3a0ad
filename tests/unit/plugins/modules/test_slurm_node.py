# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_node

from tests.unit.plugins.module_utils._slurm.fake_slurm import Fake, FakeSlurm


def test_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    slurm = FakeSlurm(tmp_path, {"n1": Fake(), "n2": Fake("IDLE", {"DRAIN"}, "owner-A: broken fan")})

    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(slurm_node, "Machine", lambda tool_timeout_seconds: slurm.machine())
        with patch_module_args(options), pytest.raises(SystemExit):
            slurm_node.main()
        return json.loads(capsys.readouterr().out)

    wish = {"nodes": ["n1"], "state": "drained", "source": "gate", "reason": "rail 2 slow"}
    result = run(**wish)
    assert result["changed"] is True and result["after"] == [
        {"name": "n1", "drain": True, "down": False, "reason": "aidc:gate: rail 2 slow", "owner": "gate"}]
    assert run(**wish)["changed"] is False
    failed = run(**{**wish, "nodes": ["n1", "n2"]})
    assert failed["failed"] and failed["problems"][0]["object"] == "n2" and "Nothing was changed." in failed["msg"]
    assert run(nodes=["n1"], state="drained")["problems"][0]["object"] == "reason"
