# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_reservation

from tests.unit.plugins.module_utils._slurm.fake_reservations import FakeReservations


def test_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    slurm = FakeReservations(tmp_path)

    def run(**options: t.Any) -> t.Any:
        monkeypatch.setattr(slurm_reservation, "Machine", lambda tool_timeout_seconds: slurm.machine())
        with patch_module_args(options), pytest.raises(SystemExit):
            slurm_reservation.main()
        return json.loads(capsys.readouterr().out)

    wish = {"purpose": "gate-gb200", "run_id": "r1", "nodes": ["n[1-2]"]}
    assert run(**wish, _ansible_check_mode=True)["changed"] is True and slurm.held == {}
    result = run(**wish)
    assert (result["changed"], result["name"]) == (True, "aidc.gate-gb200.r1")
    assert slurm.held == {"aidc.gate-gb200.r1": ("n[1-2]", "root")} and run(**wish)["changed"] is False
    slurm.jobs = {"n3": "7 bob"}
    failed = run(**{**wish, "nodes": ["n3"]})
    assert failed["failed"] and failed["problems"][0]["got"] == "job 7 of bob on n3"
    assert run(purpose="gate-gb200")["problems"][0]["object"] == "run_id"
