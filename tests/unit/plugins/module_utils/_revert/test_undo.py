# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that undoes, run as the timer runs it: its text alone, by another Python process."""
from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import undo


class Case:
    def __init__(self, folder: Path) -> None:
        self.folder, self.record, self.program = folder, folder / "revert/x.json", folder / "x.py"
        self.record.parent.mkdir()
        self.program.write_text(Path(str(undo.__file__)).read_text(encoding="utf-8"), encoding="utf-8")
        self.old, self.new = folder / "etc/old", folder / "etc/new"
        self.old.parent.mkdir()
        self.old.write_text("changed", encoding="utf-8")
        self.new.write_text("not there before", encoding="utf-8")
        self.mark = folder / "mark"

    def arm(self, seconds: float, **fields: t.Any) -> None:
        self.record.write_text(json.dumps({
            "id": "x", "state": "armed", "deadline": time.monotonic() + seconds, "lock": str(self.folder / "run/lock"),
            "files": [{"path": str(self.old), "text": "as it was", "mode": 0o600},
                      {"path": str(self.new), "text": None, "mode": 0}],
            "commands": [], "links": [["sh", "-c", f"echo x >> {self.mark}"]], **fields}), encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-I", str(self.program), str(self.record)])

    def note(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads(self.record.read_text(encoding="utf-8")))

    @property
    def undone(self) -> bool:
        return self.old.read_text(encoding="utf-8") == "as it was" and not self.new.exists() and self.mark.exists()


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_in_its_time_and_not_before(case: Case) -> None:
    case.arm(0.7)
    begun, process = time.monotonic(), case.start()
    time.sleep(0.3)
    assert not case.undone and process.poll() is None
    assert process.wait(10) == 0 and time.monotonic() - begun >= 0.6
    assert case.undone and case.old.stat().st_mode & 0o777 == 0o600
    note = case.note()
    assert (note["state"], note["problems"], note["files"], note["commands"]) == ("undone", [], [], [])
    assert note["undone_at"].endswith("Z")


def test_twice_does_nothing_more(case: Case) -> None:
    case.arm(-1)
    assert case.start().wait(10) == 0 and case.start().wait(10) == 0
    assert case.mark.read_text(encoding="ascii") == "x\n"


@pytest.mark.parametrize("netplan", [False, True])
def test_after_a_reboot_at_once_and_only_the_files(case: Case, netplan: bool) -> None:
    """No link is there yet. What netplan made of its files before is made anew."""
    unit, tools = case.folder / "x-boot.service", case.folder / "bin"
    unit.touch()
    tools.mkdir()
    (tools / "netplan").write_text(f'#!/bin/sh\necho "$*" > {case.folder}/asked\n', encoding="ascii")
    (tools / "netplan").chmod(0o755)
    case.arm(1000, boot_id="another", unit_files=[str(unit), "/gone"], commands=[["touch", str(case.mark)]])
    if netplan:
        program = case.program.read_text(encoding="utf-8").replace('"/etc/netplan/"', repr(f"{case.folder}/etc/"))
        case.program.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(case.program), str(case.record), "--boot"], timeout=10,
                          check=False, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.returncode == 0
    assert case.old.read_text(encoding="utf-8") == "as it was" and not case.new.exists()
    assert not case.mark.exists() and not unit.exists()
    assert (case.folder / "asked").exists() == netplan
    note = case.note()
    assert (note["state"], note["rebooted"], note["unit_files"], note["problems"]) == ("undone", True, [], [])


def test_the_boot_in_which_it_was_armed_waits(case: Case) -> None:
    case.arm(0.7, boot_id=Path(undo.BOOT_ID).read_text(encoding="ascii").strip())
    process = case.start()
    time.sleep(0.3)
    assert not case.undone
    # The unit for a boot, started meanwhile, leaves it to the timer and keeps nobody waiting.
    begun = time.monotonic()
    assert subprocess.run([sys.executable, "-I", str(case.program), str(case.record), "--boot"], check=True,
                          timeout=10).returncode == 0 and time.monotonic() - begun < 0.35 and not case.undone
    assert process.wait(10) == 0 and case.undone and not case.note()["rebooted"]


def test_cancelled_in_time(case: Case) -> None:
    case.arm(1.5)
    process = case.start()
    time.sleep(0.3)
    case.record.unlink()
    assert process.wait(10) == 0
    assert not case.undone and not case.mark.exists()


def test_a_module_that_still_writes_is_waited_for_and_prolongs(case: Case) -> None:
    case.arm(-1)
    lock = case.folder / "run/lock"
    lock.parent.mkdir()
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    process = case.start()
    time.sleep(0.5)
    assert not case.undone
    case.arm(0.6)
    os.close(descriptor)
    time.sleep(0.3)
    assert not case.undone
    assert process.wait(10) == 0 and case.undone


def test_the_end_of_the_session_does_not_stop_it(case: Case) -> None:
    case.arm(0.8)
    process = case.start()
    time.sleep(0.4)
    process.send_signal(signal.SIGHUP)
    assert process.wait(10) == 0 and case.undone


def test_a_part_that_fails_does_not_stop_the_others(case: Case) -> None:
    case.arm(-1, commands=[["no-such-program"], ["sh", "-c", "echo broken >&2; exit 3"],
                           ["write", str(case.folder / "none/x"), "1"]])
    assert case.start().wait(20) == 0 and case.undone
    problems = case.note()["problems"]
    assert len(problems) == 3 and "no-such-program" in problems[0] and "broken" in problems[1]


def test_a_kernel_file_is_written_in_place(case: Case) -> None:
    target = case.folder / "sysctl"
    target.write_text("0\n", encoding="ascii")
    inode = target.stat().st_ino
    record: dict[str, t.Any] = {"files": [], "commands": [], "links": [["write", "/sysctl", "2"]]}
    assert undo.restore(record, root=str(case.folder)) == []
    assert (target.read_text(encoding="ascii"), target.stat().st_ino) == ("2\n", inode)


def test_without_a_record_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert undo.main(str(tmp_path / "none.json")) == 0
    (tmp_path / "cut.json").write_text('{"state": "arm', encoding="ascii")
    assert undo.main(str(tmp_path / "cut.json")) == 0
