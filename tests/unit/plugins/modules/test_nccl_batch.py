# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.batch import Answer, Batch
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.io import Interrupted
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.model import Verdict
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.run import Report
from ansible_collections.aidc.gpu_cluster.plugins.modules import nccl_batch

Call = t.Callable[..., t.Any]
HOSTS = [{"name": f"node{i}", "address": f"192.0.2.{i}", "host_keys": ["ssh-ed25519 AAAA"]} for i in range(1, 4)]
RUN = {"id": "a", "hosts": ["node3", "node2"], "min_bytes": "1M", "max_bytes": "2M", "min_busbw_gbps": 10}
OPTIONS: dict[str, t.Any] = {"run_id": "run-1", "hosts": HOSTS, "gpus_per_host": 4, "environment": {"A": 1, "B": 2}}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setattr(nccl_batch, "Store", lambda: Store(tmp_path))

    def run(code: int = 0, **options: t.Any) -> t.Any:
        with patch_module_args({**OPTIONS, **options}), pytest.raises(SystemExit) as ended:
            nccl_batch.main()
        assert ended.value.code == code
        return json.loads(capsys.readouterr().out)

    return run


def test_options_become_launches(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Batch] = []

    def run(batch: Batch) -> t.Any:
        seen.append(batch)
        reports = [Report(["mpirun"], Verdict("SLOW", "too slow", ratio=0.5)), None]
        return [["mpirun"]], [Answer(item, report) for item, report in zip(batch.items, reports)]

    monkeypatch.setattr(Batch, "run", run)
    rail = {**RUN, "id": "a-rail0", "environment": {"B": 3}, "needs": "a", "program": "/opt/x"}
    result = call(runs=[RUN, rail], parallel=3)
    (batch,) = seen
    assert [host.name for host in batch.pool.hosts] == ["node1", "node2", "node3"] and batch.parallel == 3
    first, second = batch.items
    assert [host.name for host in first.job.hosts] == ["node3", "node2"] and first.seconds == 120
    assert (second.job.mark, second.job.run_dir) == ("run-1.a-rail0", f"{tmp_path}/.aidc/runs/run-1")
    assert second.job.environment == {"A": "1", "B": "3"} and second.needs == "a" and second.job.binary == "/opt/x"
    assert result["runs"][0]["verdict"]["ratio"] == 0.5 and result["runs"][1]["verdict"] is None
    assert result["changed"] is False and result["commands"] == [["mpirun"]]


@pytest.mark.parametrize("runs", [[{**RUN, "hosts": ["node4"]}], [{**RUN, "hosts": []}]])
def test_a_host_that_is_not_of_the_pool_is_refused(call: Call, runs: list[t.Any]) -> None:
    assert "names of hosts" in call(1, runs=runs)["msg"]


def test_check_mode_runs_nothing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batch, "run", None)
    result = call(runs=[RUN], launcher="no-such-mpirun", _ansible_check_mode=True)
    assert result["runs"] == [] and result["commands"][0][0] == "no-such-mpirun"


def test_an_end_by_signal_is_a_failure_in_words(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(batch: Batch) -> t.Any:
        raise Interrupted("SIGTERM")

    monkeypatch.setattr(Batch, "run", run)
    assert "SIGTERM" in call(1, runs=[RUN])["msg"]
