# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With real processes: what carries a mark is found and ended, what does not is left alone."""
from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes

OBEYS = "import time; print('up', flush=True); time.sleep(60)"
IGNORES = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        process.kill()
        process.wait()


def start(running: list[subprocess.Popen[bytes]], code: str, run_id: str | None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **({processes.MARK_VARIABLE: run_id} if run_id else {})}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE,
                               start_new_session=True)
    running.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def run_ids(count: int) -> list[str]:
    return [f"test-{uuid.uuid4().hex[:8]}" for _number in range(count)]


def test_ends_those_of_the_run_and_no_other(started: list[subprocess.Popen[bytes]]) -> None:
    one, two = run_ids(2)
    obeying, ignoring = start(started, OBEYS, one), start(started, IGNORES, one)
    other, unmarked = start(started, OBEYS, two), start(started, OBEYS, None)
    begin = time.monotonic()
    ended = processes.end(lambda run_id: run_id == one, grace_seconds=0.3)
    assert time.monotonic() - begin < 5
    assert {process.pid for process in ended.killed} == {obeying.pid, ignoring.pid}
    assert ended.left == [] and all(one == process.run_id for process in ended.killed)
    assert obeying.wait(5) == -15 and ignoring.wait(5) == -9
    assert other.poll() is None and unmarked.poll() is None
    assert [process.pid for process in processes.find(lambda run_id: run_id in (one, two))] == [other.pid]


def test_nothing_to_end_takes_no_time() -> None:
    begin = time.monotonic()
    assert processes.end(lambda run_id: False) == processes.Ended()
    assert time.monotonic() - begin < 1


def test_settling_lets_a_process_end_by_itself(started: list[subprocess.Popen[bytes]]) -> None:
    (run_id,) = run_ids(1)
    process = start(started, "import time; print('up', flush=True); time.sleep(0.3)", run_id)
    assert processes.end(lambda found: found == run_id, settle_seconds=3.0) == processes.Ended()
    assert process.wait(5) == 0


def test_start_time_tells_a_process_from_its_successor(started: list[subprocess.Popen[bytes]]) -> None:
    process = start(started, OBEYS, None)
    first = processes.start_of(process.pid)
    assert first is not None and first == processes.start_of(process.pid)
    process.kill()
    time.sleep(0.2)
    # A zombie works for nobody.
    assert processes.start_of(process.pid) is None
    process.wait()
    assert processes.start_of(process.pid) is None
