# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import tiers

ROOT = Path(__file__).resolve().parents[3]


def tier(*commands: str, seconds: int = 20) -> tiers.Tier:
    return tiers.Tier(seconds, tuple((sys.executable, "-c", command) for command in commands))


def test_runs_name_tiers_and_end_with_pytest() -> None:
    for name, run in tiers.RUNS.items():
        assert set(run) <= set(tiers.TIERS), name
        assert tiers.TIERS[run[-1]].commands[-1][0] == "pytest", name


def test_full_leaves_out_no_test() -> None:
    """Each tier of test is in full, itself or as NAME-all, and nothing there is chosen by a marker."""
    full = tiers.RUNS["full"]
    for name in tiers.RUNS["test"]:
        assert f"{name}-all" in full or (name in full and f"{name}-all" not in tiers.TIERS)
    commands = [command for name in full for command in tiers.TIERS[name].commands if command[0] == "pytest"]
    assert commands and not [command for command in commands if "-m" in command]


def test_makefile_has_a_target_for_each_tier() -> None:
    targets = re.findall(r"^([a-z0-9 -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    words = {word for line in targets for word in line.split()}
    assert {name for name in (*tiers.TIERS, *tiers.RUNS) if not name.endswith("-all")} <= words


def test_the_first_failure_ends_the_run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tiers, "TIERS", {"one": tier("print('first')", "raise SystemExit(3)"),
                                         "two": tier("print('second')")})
    assert tiers.main(["one", "two"], math.inf) == 3
    out = capfd.readouterr().out
    assert "first" in out and "== one FAILED" in out and "exit status 3" in out and "second" not in out


def test_time_limits_of_a_tier_and_in_all(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tiers, "TIERS", {"slow": tier("import time; time.sleep(60)", seconds=1)})
    assert tiers.main(["slow"], math.inf) == 124
    assert "ran out of its 1 s" in capfd.readouterr().out
    monkeypatch.setattr(tiers, "TIERS", {"slow": tier("import time; time.sleep(60)")})
    assert tiers.main(["slow"], 1.5) == 124


def test_ended_from_outside_it_takes_its_command_along(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    child = f"import os, pathlib, time; pathlib.Path({str(file)!r}).write_text(str(os.getpid())); time.sleep(60)"
    code = (f"import sys; from tests import tiers; tiers.BIN = tiers.Path('/'); "
            f"tiers.TIERS = {{'one': tiers.Tier(50, (({sys.executable[1:]!r}, '-c', {child!r}),))}}; "
            "sys.exit(tiers.main(['one'], 50))")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (file.exists() and file.read_text(encoding="ascii")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=20) == 143
    assert not Path(f"/proc/{file.read_text(encoding='ascii')}").exists()
