# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.io import Interrupted
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.launch import Job
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.model import Verdict
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.run import Report
from ansible_collections.aidc.gpu_cluster.plugins.modules import nccl_test

Call = t.Callable[..., t.Any]
OPTIONS: dict[str, t.Any] = {
    "run_id": "run-1",
    "gpus_per_host": 4,
    "min_busbw_gbps": 50,
    "environment": {"NCCL_DEBUG": "INFO", "NCCL_P2P_LEVEL": 3},
    "hosts": [{"name": "node1", "address": "192.0.2.1", "host_keys": ["ssh-ed25519 AAAA"]}],
}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setattr(nccl_test, "Store", lambda: Store(tmp_path))

    def run(code: int = 0, **options: t.Any) -> t.Any:
        with patch_module_args(options), pytest.raises(SystemExit) as ended:
            nccl_test.main()
        assert ended.value.code == code
        return json.loads(capsys.readouterr().out)

    return run


def test_options_become_the_job(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[t.Any] = []

    def tested(*arguments: t.Any) -> Report:
        seen.extend(arguments)
        return Report(["mpirun"], Verdict("SLOW", "too slow"))

    monkeypatch.setattr(nccl_test, "tested", tested)
    result = call(**OPTIONS, time_limit_seconds=7, max_bytes="2G", allow_simulated=True)
    job: Job = seen[0]
    assert (job.run_dir, job.max_bytes, job.gpus_per_host) == (f"{tmp_path}/.aidc/runs/run-1", "2G", 4)
    assert job.environment == {"NCCL_DEBUG": "INFO", "NCCL_P2P_LEVEL": "3"}
    assert job.hosts[0].host_keys == ("ssh-ed25519 AAAA",)
    assert seen[1].min_busbw_gbps == 50 and seen[1].allow_simulated and seen[2].seconds == 7
    # A bad verdict is a result, not a failure, unless that is asked for.
    assert (result["changed"], result["verdict"]["state"], result["command"]) == (False, "SLOW", ["mpirun"])
    failed = call(1, **OPTIONS, fail_on_verdict=True)
    assert failed["msg"] == "SLOW: too slow" and failed["verdict"]["state"] == "SLOW"


def test_check_mode_runs_nothing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_test, "tested", None)
    result = call(**OPTIONS, launcher="no-such-mpirun", _ansible_check_mode=True)
    assert result["verdict"] is None and result["command"][0] == "no-such-mpirun" and result["changed"] is False


def test_a_log_is_judged_as_what_was_given(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("nothing of use\n", encoding="utf-8")
    result = call(state="judged", log_file=str(path), min_busbw_gbps=1)
    assert result["verdict"]["state"] != "PASS" and result["log"] == "nothing of use\n"
    assert call(1, state="judged", log_file=str(tmp_path / "none"), min_busbw_gbps=1)["failed"]


def test_an_end_by_signal_is_a_failure_in_words(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def tested(*arguments: t.Any) -> Report:
        raise Interrupted("SIGTERM")

    monkeypatch.setattr(nccl_test, "tested", tested)
    assert "SIGTERM" in call(1, **OPTIONS)["msg"]


@pytest.mark.parametrize("options", [{}, {"min_busbw_gbps": 1}, {"state": "judged", "min_busbw_gbps": 1}])
def test_what_a_state_needs_must_be_given(call: Call, options: dict[str, t.Any]) -> None:
    assert call(1, **options)["failed"]
