# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher with programs that behave badly: it always returns, and nothing of the run is left."""
from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.io import Bounds, Interrupted, Outcome

RUN = f"io-{os.getpid()}"


def launch(tmp_path: Path, script: str, bounds: Bounds | None = None) -> Outcome:
    mark = {processes.MARK_VARIABLE: RUN, "PATH": os.environ["PATH"]}
    return io.launch(["/bin/sh", "-c", script], mark, RUN, tmp_path / "run.log", bounds or Bounds(20))


def log(tmp_path: Path) -> str:
    return (tmp_path / "run.log").read_text(encoding="utf-8")


def test_a_good_run(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "echo out; echo err >&2; cat; env")
    assert (outcome.exit_code, outcome.timed_out, outcome.killed, outcome.left) == (0, False, [], [])
    assert log(tmp_path).startswith("out\nerr\n")
    assert "HOME" not in log(tmp_path)
    evidence = outcome.evidence()
    assert evidence["exit_code"] == 0 and evidence["started"].endswith("Z")


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -6 $$", 134)])
def test_exit_codes(tmp_path: Path, script: str, code: int) -> None:
    assert launch(tmp_path, script).exit_code == code


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    outcome = io.launch(["/nonexistent/mpirun"], {}, RUN, tmp_path / "run.log", Bounds(5))
    assert outcome.exit_code is None and "/nonexistent/mpirun" in outcome.not_started


def test_time_limit_with_a_child_that_ignores_term_in_a_group_of_its_own(tmp_path: Path) -> None:
    """As a rank does: another session, TERM ignored, output kept open."""
    script = "setsid sh -c 'trap \"\" TERM; echo rank; while :; do sleep 0.1; done' & trap '' TERM; sleep 60; sleep 60"
    begin = time.monotonic()
    outcome = launch(tmp_path, script, Bounds(0.5, grace_seconds=0.5))
    assert time.monotonic() - begin < 8
    assert outcome.timed_out and outcome.exit_code is None and outcome.left == []
    assert outcome.killed and log(tmp_path) == "rank\n"
    assert processes.find(lambda run_id: run_id == RUN) == []


def test_a_stray_after_a_good_end_is_ended_too(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "setsid sleep 60 & exit 0")
    assert outcome.exit_code == 0 and [process.command for process in outcome.killed] == ["sleep 60"]
    assert processes.find(lambda run_id: run_id == RUN) == []


def test_endless_output_is_cut_off(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "yes nonsense", Bounds(20, log_bytes=100_000, grace_seconds=1))
    assert outcome.too_much_output and not outcome.timed_out and outcome.seconds < 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_ends_the_run_first(tmp_path: Path, number: int) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=signal.Signals(number).name):
        launch(tmp_path, "sleep 60")
    assert processes.find(lambda run_id: run_id == RUN) == []
    assert signal.getsignal(number) is before


def test_bounded_text_keeps_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"A" * 10 + b"\xff" + b"m" * 1000 + b"Z" * 10)
    text = io.bounded_text(path, 11, 10)
    assert text == "A" * 10 + "\N{REPLACEMENT CHARACTER}" + "\n... 1000 bytes left out ...\n" + "Z" * 10
    path.write_bytes(b"short")
    assert io.bounded_text(path) == "short"


def test_only_the_newest_logs_stay(tmp_path: Path) -> None:
    for number in range(5):
        path = tmp_path / f"{number}.log"
        path.touch()
        os.utime(path, (number, number))
    io.prune_logs(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.log", "4.log"]
