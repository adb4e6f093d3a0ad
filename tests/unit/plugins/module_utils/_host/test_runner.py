# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host import runner
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result, run

PYTHON = sys.executable


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def alive(pid_file: Path) -> bool:
    pid = int(pid_file.read_text(encoding="utf-8"))
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


def test_ok_with_locale_and_both_streams() -> None:
    result = run(["sh", "-c", "echo $LC_ALL; echo oops >&2"], 5)
    assert (result.state, result.rc, result.stdout, result.stderr) == ("ok", 0, "C\n", "oops\n")


def test_failed_says_why() -> None:
    result = run(["sh", "-c", "echo bad thing >&2; exit 3"], 5)
    assert (result.state, result.rc) == ("failed", 3)
    assert result.why() == "exit status 3: bad thing"


def test_failed_without_a_word() -> None:
    assert run(["false"], 5).why() == "exit status 1"


def test_missing() -> None:
    result = run(["aidc-no-such-tool"], 5)
    assert result.state == "missing"
    assert result.why() == "the program is not installed"


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "tool").write_bytes(b"\x00\x01garbage")
    (tmp_path / "tool").chmod(0o755)
    result = run([str(tmp_path / "tool")], 5)
    assert result.state == "failed"
    assert "cannot be started" in result.why()


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "TERM_GRACE_SECONDS", 0.3)


@pytest.mark.usefixtures("short_grace")
def test_a_tool_that_ignores_term_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = [tmp_path / "pid", tmp_path / "child"]
    tool = script(tmp_path / "tool", f"trap '' TERM\necho $$ > {pids[0]}\n(echo $BASHPID; exec sleep 60) &\n"
                                     f"echo $! > {pids[1]}\nwhile :; do sleep 0.05; done")
    start = time.monotonic()
    result = run([tool], 0.5)
    assert result.state == "timeout"
    assert result.rc is None
    assert "no answer within 0.5 s" in result.why()
    assert time.monotonic() - start < 4
    time.sleep(0.05)
    assert [alive(pid) for pid in pids] == [False, False]


@pytest.mark.usefixtures("short_grace")
def test_a_grandchild_that_ignores_term_after_its_parent_obeyed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    tool = script(tmp_path / "tool", f"(trap '' TERM; while :; do sleep 0.05; done) &\necho $! > {pid}\nsleep 60")
    assert run([tool], 0.3).state == "timeout"
    time.sleep(0.05)
    assert not alive(pid)


def test_a_grandchild_that_holds_the_pipe_does_not_block(tmp_path: Path) -> None:
    start = time.monotonic()
    result = run([script(tmp_path / "tool", "sleep 6 &\necho done")], 10)
    assert (result.state, result.stdout) == ("ok", "done\n")
    assert time.monotonic() - start < 3


def test_a_grandchild_that_keeps_writing_does_not_block(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    tool = script(tmp_path / "tool", f"(while echo more; do :; done) &\necho $! > {pid}\nsleep 0.1")
    start = time.monotonic()
    run([tool], 10, stdout_limit_bytes=1000)
    assert time.monotonic() - start < 3


def test_endless_output_is_cut_and_no_success() -> None:
    result = run(["sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"], 5, stdout_limit_bytes=1000)
    assert result.state == "failed"
    assert len(result.stdout) == 1000
    assert result.why() == "printed more than 1000 bytes"


def test_closed_streams_are_no_end() -> None:
    result = run(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"], 5)
    assert (result.state, result.rc) == ("failed", 4)


def test_output_that_is_no_utf8() -> None:
    assert run(["printf", r"\377ok"], 5).stdout == "\ufffdok"


def test_stdin_is_empty() -> None:
    assert run(["cat"], 5) == Result(("cat",), "ok", 0, "", "")


def test_tools_of_the_system_are_found_without_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert run(["sh", "-c", "exit 0"], 5).state == "ok"
