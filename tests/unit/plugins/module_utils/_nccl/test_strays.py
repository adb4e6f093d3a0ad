# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ended on a host where a run did not end well, and what is not."""
from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import processes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl import strays
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nccl.launch import Host, Job

RUN = f"strays-{os.getpid()}"


def test_strays_of_the_run_are_ended_by_the_script_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script as a host would get it, on real processes."""
    monkeypatch.setattr(strays, "MARK_VARIABLE", processes.MARK_VARIABLE)
    mark = processes.MARK_VARIABLE
    plain = {key: value for key, value in os.environ.items() if key != mark}
    own = [subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 60 & wait; wait"], env={**plain, mark: value})
           for value in (f"{RUN}-s", f"{RUN}-s.000001")]
    others = [subprocess.Popen(["sleep", "60"], env=environment)
              for environment in (plain, {**plain, mark: f"{RUN}-sx"}, {**plain, mark: f"x{RUN}-s"})]
    try:
        done = subprocess.run(["/bin/sh"], input=strays.script(f"{RUN}-s"), env={**plain, mark: f"{RUN}-s"},
                              capture_output=True, text=True, timeout=20, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert all(process.wait(5) < 0 for process in own)
        assert all(process.poll() is None for process in others)
    finally:
        for process in own + others:
            process.kill()
            process.wait()


def test_a_host_that_does_not_answer_is_named_and_holds_no_other_up(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\ncat > /dev/null\ncase $3 in *.1) sleep 30;; *.2) echo 12 13; exit 1;; "
                   "*.3) echo 'no route' >&2; exit 255;; esac\n", encoding="utf-8")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(strays, "TIMEOUT_SECONDS", 1.0)
    hosts = tuple(Host(f"node{i}", f"192.0.2.{i}") for i in range(1, 5))
    start = time.monotonic()
    found = strays.end_on(Job(hosts, RUN, str(tmp_path), "ops", 1), hosts)
    assert found == ["node1: no answer within 1 s", "node2: processes 12 13 are still there", "node3: no route"]
    assert time.monotonic() - start < 10
