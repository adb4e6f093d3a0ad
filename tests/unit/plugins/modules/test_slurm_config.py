# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_config

from tests.unit.plugins.module_utils._slurm.fake_config import SlurmHost

FILES = {"cgroup.conf": "# Written by aidc.gpu_cluster\nCgroupPlugin=disabled\n"}


def test_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = SlurmHost(tmp_path)
    monkeypatch.setattr(slurm_config, "Machine", lambda tool_timeout_seconds: host.node.machine())

    def run(**options: t.Any) -> t.Any:
        with patch_module_args({"files": FILES, "role": "compute", **options}), pytest.raises(SystemExit):
            slurm_config.main()
        return json.loads(capsys.readouterr().out)

    predicted, real = run(_ansible_check_mode=True), run()
    assert predicted["commands"] == real["commands"] and real["changed"] is True
    assert real["diff"]["after"]["cgroup.conf"] == {
        "text": FILES["cgroup.conf"], "mode": "0644", "owner": "root"}
    assert run()["changed"] is False
    assert run(files={"x": "y"})["problems"][0]["got"] == "x"
