# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tools import fresh


def test_only_what_reaches_mirrors_is_passed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AIDC_LAB_MIRROR"):
        monkeypatch.setenv(name, name)
    for name in ("AIDC_LAB_STATE", "SSH_AUTH_SOCK", "PYTHONPATH", "VIRTUAL_ENV", "MY_TOKEN", "HOME"):
        monkeypatch.setenv(name, "/not/this")
    passed = fresh.environment()
    assert passed["PIP_INDEX_URL"] == "PIP_INDEX_URL" and passed["AIDC_LAB_MIRROR"] == "AIDC_LAB_MIRROR"
    assert {"https_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} <= set(passed)
    assert "/not/this" not in passed.values()


def test_settings_of_apt_that_run_programs_stay_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    conf = tmp_path / "apt.conf.d"
    conf.mkdir()
    (conf / "90proxy").write_bytes(b'Acquire::http::Proxy "http://proxy.example:3128";\n')
    (conf / "70hook").write_bytes(b'DPkg::Post-Invoke {"/usr/bin/something";};\n')
    (conf / "01own").write_bytes(b"ours\n")
    lower = tmp_path / "lower"
    (lower / str(conf).lstrip("/")).mkdir(parents=True)
    (lower / str(conf / "01own").lstrip("/")).touch()
    monkeypatch.setattr(fresh, "FOLDERS", (str(conf),))
    found = fresh.machine_files(lower)
    assert [Path(name).name for name in found if name.startswith(str(conf))] == ["90proxy"]


def run_script(tmp_path: Path, makefile: str) -> subprocess.CompletedProcess[str]:
    """The script of the clean machine, with a repository here and ``makefile`` in it."""
    source, target = tmp_path / "source", tmp_path / "checkout"
    source.mkdir()
    (source / "Makefile").write_text(makefile, encoding="utf-8")
    git = ["git", "-C", str(source), "-c", "user.name=n", "-c", "user.email=e@example"]
    for argv in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *argv], check=True)
    text = fresh.script(["test", "lab"]).replace(fresh.CHECKOUT, str(target)).replace("/aidc.bundle", str(source))
    return subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("makefile", "code", "words"), [
    ("test:\n\t@echo t\nlab:\n\t@echo l\n", 0, ["make test done in", "make lab done in"]),
    ("test:\n\t@false\nlab:\n\t@echo l\n", 1, ["make test FAILED", "make lab done in"]),
    ("test:\n\t@echo t\nlab:\n\t@false\n", 1, ["make test done in", "make lab FAILED"]),
])
def test_fails_when_one_target_fails_and_runs_the_other(tmp_path: Path, makefile: str, code: int,
                                                        words: list[str]) -> None:
    done = run_script(tmp_path, makefile)
    assert done.returncode == code
    assert all(word in done.stdout for word in words)


def test_the_janitor_cleans_after_a_killed_process(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        fresh.Janitor((tmp_path / "cleaned").touch)
        time.sleep(60)
        os._exit(0)
    time.sleep(0.2)
    assert not (tmp_path / "cleaned").exists()
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    deadline = time.monotonic() + 10
    while not (tmp_path / "cleaned").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (tmp_path / "cleaned").exists()
