# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time limit on real processes: what hangs, what ends, what floods."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import guard
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health.model import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import run

NAMES = ("disk", "ports", "qos")


def texts(results: list[Result]) -> list[tuple[str, bool | None, str]]:
    return [(result.check, result.ok, result.text) for result in results]


def test_results_come_through() -> None:
    def work(told: guard.Send, have: guard.Have) -> None:
        for name in NAMES:
            told((name,))
            have(Result(name, name != "qos", "ü" * 100_000 if name == "ports" else ""))

    assert texts(guard.guarded(work, NAMES, 10)) == [("disk", True, ""), ("ports", True, "ü" * 100_000),
                                                     ("qos", False, "")]


def test_what_hangs_is_named_and_the_rest_is_unknown(tmp_path: Path) -> None:
    def work(told: guard.Send, have: guard.Have) -> None:
        told(("disk",))
        have(Result("disk", True))
        told(("ports",))
        # A read that no signal ends.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (tmp_path / "pid").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(60)

    start = time.monotonic()
    assert texts(guard.guarded(work, NAMES, 0.3)) == [
        ("disk", True, ""), ("ports", False, "no answer within 0.3 s"), ("qos", None, "not reached")]
    assert time.monotonic() - start < 5
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    for _try in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text(encoding="utf-8").split()[2] == "Z":
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the child is still there")


def test_a_hanging_tool_is_ended_with_the_check(tmp_path: Path) -> None:
    def work(told: guard.Send, have: guard.Have) -> None:
        told(("ports",))
        run(("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"), 50)

    guard.guarded(work, NAMES, 0.5)
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    for _try in range(100):
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the tool is still there")


def test_a_check_that_breaks() -> None:
    def work(told: guard.Send, have: guard.Have) -> None:
        told(("disk",))
        raise RuntimeError

    assert texts(guard.guarded(work, NAMES, 10))[0] == ("disk", False, "the check ended without a result")


def test_nobody_holds_the_pipes_of_slurmd(tmp_path: Path) -> None:
    """slurmd reads the output to its end: a stuck child must not keep it open."""
    code = ("import time, signal\n"
            "from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import guard\n"
            "def work(told, have):\n"
            "    signal.signal(signal.SIGTERM, signal.SIG_IGN); told(('disk',)); time.sleep(4)\n"
            "guard.os.kill = lambda *arguments: None\n"
            "print(guard.guarded(work, ('disk',), 0.2)[0].ok)\n")
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr
    assert time.monotonic() - start < 3.5
