# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of nccl_test with a launcher that is a script: every way to end has its own state, none is a pass."""
from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import io as access_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.model import Record
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl import launch, run
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.io import Bounds
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.launch import Host, Job
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.run import Criteria, Report

RUN = f"run-{os.getpid()}"
CRITERIA = Criteria(10.0)
HEADER = """\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 1 iters: 3 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid    100 on      node1 device  0 [0000:01:00] GPU
#  Rank  1 Group  0 Pid    100 on      node1 device  1 [0000:02:00] GPU
#  Rank  2 Group  0 Pid    100 on      node2 device  0 [0000:01:00] GPU
#  Rank  3 Group  0 Pid    100 on      node2 device  1 [0000:02:00] GPU
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1   157.29    6.67   10.00       0   157.29    6.67   10.00       0
"""
ROW = ("     2097152        524288     float     sum      -1   314.57    6.67   10.00       0"
       "   314.57    6.67   10.00       0\n")
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 10\n#\n"
GOOD = HEADER + ROW + FOOTER
SLOW = GOOD.replace("   157.29    6.67   10.00", "   314.57    3.33    5.00").replace(
    "   314.57    6.67   10.00", "   629.15    3.33    5.00").replace(": 10\n", ": 5\n")
WRONG = HEADER + ROW.replace("10.00       0\n", "10.00      17\n") + FOOTER.replace("0 OK", "1 FAILED")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run, "refuse_root", lambda: None)
    monkeypatch.setattr(launch, "MARK_VARIABLE", processes.MARK_VARIABLE)
    script(tmp_path / "ssh", f'#!/bin/sh\necho "$3 $4" >> {tmp_path}/ssh-calls\n'
                             f'[ -e {tmp_path}/ssh-fails ] && {{ echo refused >&2; exit 255; }}\nexit 0\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def script(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def prepare(place: Path, output: str, then: str = "exit 0") -> tuple[Job, Store]:
    """A launcher that prints ``output``, then runs ``then``; a run that run_access has made."""
    (place / "output").write_text(output, encoding="utf-8")
    mpirun = script(place / "mpirun", f"""#!/bin/sh
[ "$1" = --version ] && {{ echo 'mpirun (Open MPI) 5.0.7'; exit 0; }}
cat {place}/output
{then}
""")
    store = Store(place)
    store.prepare()
    here = access_io.here()
    folder = store.run_dir(RUN)
    access_io.own_directory(folder)
    store.write_record(Record(RUN, "node1", "alice", here.now + 60, here.host, here.boot_id))
    (folder / access_io.KEY).write_text("key", encoding="utf-8")
    keys = ("ssh-ed25519 AAAA",)
    hosts = (Host("node1", "192.0.2.1", host_keys=keys), Host("node2", "192.0.2.2", host_keys=keys))
    job = Job(hosts, RUN, str(folder), "ops", 2, script(place / "all_reduce_perf", "#!/bin/sh\n"), mpirun,
              min_bytes="1M", max_bytes="2M")
    return job, store


def outcome(place: Path, output: str, then: str = "exit 0", criteria: Criteria = CRITERIA,
            seconds: float = 20) -> Report:
    job, store = prepare(place, output, then)
    return run.tested(job, criteria, Bounds(seconds, grace_seconds=0.5), store, Machine())


def test_pass(place: Path) -> None:
    report = outcome(place, GOOD)
    assert report.verdict is not None and report.result is not None
    assert report.verdict.label == "PASS", report.verdict.reason
    values = report.as_dict()
    assert values["changed"] is False and values["log"] == GOOD
    assert values["result"]["peak_busbw_gbps"] == 10.0 and len(values["result"]["rows"]) == 2
    assert values["result"]["hosts"] == ["node1", "node2"]
    assert values["command"][0] == str(place / "mpirun") and values["evidence"]["exit_code"] == 0


@pytest.mark.parametrize(("output", "then", "state"), [
    (SLOW, "exit 0", "SLOW"),
    (WRONG, "exit 7", "WRONG"),
    (WRONG, "exit 0", "WRONG"),
    (GOOD.replace("10.00       0", "10.00     N/A"), "exit 0", "UNVERIFIED"),
    (HEADER + ROW, "exit 0", "INCOMPLETE"),
    (HEADER, "kill -9 $$", "CRASH"),
    (GOOD, "exit 137", "CRASH"),
    (GOOD.replace("node2", "node3"), "exit 0", "INVALID"),
    (GOOD.replace("maxBytes 2097152", "maxBytes 1048576").replace(ROW, ""), "exit 0", "INVALID"),
    ("ssh: connect to host 192.0.2.2 port 22: Connection refused\n", "exit 1", "LAUNCH"),
    (GOOD.replace("GPU\n", "SIMULATED (no GPU)\n"), "exit 0", "INVALID"),
])
def test_every_other_end_has_its_state(place: Path, output: str, then: str, state: str) -> None:
    report = outcome(place, output, then)
    assert report.verdict is not None
    assert report.verdict.state == state, report.verdict.reason


@pytest.mark.parametrize("output", ["", "\n", "Usage: all_reduce_perf\n", "x" * 100000])
def test_an_empty_or_senseless_log_with_exit_code_0_is_no_pass(place: Path, output: str) -> None:
    verdict = outcome(place, output).verdict
    assert verdict is not None and verdict.state != "PASS"


def test_a_run_over_its_time_is_a_hang_even_if_its_log_is_whole(place: Path) -> None:
    report = outcome(place, GOOD, "trap '' TERM; sleep 60; sleep 60", seconds=0.5)
    assert report.verdict is not None and report.verdict.state == "HANG"
    assert report.evidence["timed_out"] and report.evidence["left"] == []


def test_after_a_bad_end_the_other_hosts_are_cleared_and_after_a_good_one_nobody_is_asked(place: Path) -> None:
    assert outcome(place, SLOW).evidence["left_on_hosts"] == [] and not (place / "ssh-calls").exists()
    assert outcome(place, HEADER, "exit 3").evidence["left_on_hosts"] == []
    assert (place / "ssh-calls").read_text(encoding="utf-8") == "192.0.2.2 /bin/sh\n", "never the head itself"
    (place / "ssh-fails").touch()
    report = outcome(place, HEADER, "exit 3")
    assert report.evidence["left_on_hosts"] == ["node2: refused"]
    assert report.verdict is not None and report.verdict.state == "CRASH"


def test_simulated_passes_in_a_lab_only_and_says_so(place: Path) -> None:
    output = GOOD.replace("GPU\n", "SIMULATED (no GPU)\n")
    report = outcome(place, output, criteria=dataclasses.replace(CRITERIA, allow_simulated=True))
    assert report.verdict is not None and report.verdict.label == "PASS (SIMULATED)"


def test_the_run_counts_as_alive_while_it_runs_and_as_finished_after(place: Path) -> None:
    job, store = prepare(place, GOOD, f"cp {place}/.aidc/runs/{RUN}/run.json {place}/seen")
    run.tested(job, CRITERIA, Bounds(20), store, Machine())
    seen = (place / "seen").read_text(encoding="utf-8")
    assert f'"pid": {os.getpid()}' in seen and '"finished": false' in seen
    record = store.record(RUN)
    assert record is not None and record.finished


def test_without_its_key_nothing_is_started(place: Path) -> None:
    job, store = prepare(place, GOOD, f"touch {place}/started")
    (store.run_dir(RUN) / access_io.KEY).unlink()
    verdict = run.tested(job, CRITERIA, Bounds(20), store, Machine()).verdict
    assert verdict is not None and verdict.state == "LAUNCH" and "key" in verdict.reason
    assert not (place / "started").exists()


@pytest.mark.parametrize("changes", [{"binary": "/nonexistent/all_reduce_perf"}, {"launcher": "no-such-mpirun"}])
def test_a_missing_program_is_a_failed_launch_that_names_it(place: Path, changes: dict[str, str]) -> None:
    job, store = prepare(place, GOOD)
    job = dataclasses.replace(job, **changes)  # type: ignore[arg-type]
    verdict = run.tested(job, CRITERIA, Bounds(20), store, Machine()).verdict
    assert verdict is not None and verdict.state == "LAUNCH"
    assert next(iter(changes.values())) in verdict.reason


def test_another_launcher_is_no_open_mpi(place: Path) -> None:
    job, store = prepare(place, GOOD)
    script(place / "mpirun", "#!/bin/sh\necho HYDRA build details:\n")
    verdict = run.tested(job, CRITERIA, Bounds(20), store, Machine()).verdict
    assert verdict is not None and verdict.state == "LAUNCH" and "Open MPI" in verdict.reason


@pytest.mark.parametrize("criteria", [Criteria(0.0), Criteria(-1.0), Criteria(float("nan")), Criteria(1.0, 0.0),
                                      Criteria(1.0, 1.5)])
def test_a_limit_that_would_pass_everything_is_refused(place: Path, criteria: Criteria) -> None:
    job, store = prepare(place, GOOD)
    with pytest.raises(AidcError):
        run.tested(job, criteria, Bounds(20), store, Machine())


def test_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(AidcError, match="without become"):
        run.refuse_root()


def test_check_mode_says_what_would_run(place: Path) -> None:
    job, _store = prepare(place, GOOD, f"touch {place}/started")
    report = run.planned(job, CRITERIA, Machine())
    assert report.verdict is None and report.command[0] == str(place / "mpirun")
    assert not (place / "started").exists()
    missing = run.planned(dataclasses.replace(job, launcher="no-such-mpirun"), CRITERIA, Machine())
    assert missing.command[0] == "no-such-mpirun"
