# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command as a user runs it: a process, its exit code and its words."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plugins.module_utils._gate import cli

ROOT = Path(__file__).parents[5]
LOG = Path(__file__).parents[1] / "_nccl" / "fixtures" / "v2.19.6-single-process.txt"
CASE = Path(__file__).parent / "fixtures" / "gb200-slow-rail.json"
CHECKOUT = "plugins.module_utils._gate.cli"
INSTALLED = "ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.cli"


def gate(*argv: str, module: str = CHECKOUT, stdin: bytes = b"") -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".collections") if module == INSTALLED else ""}
    done = subprocess.run([sys.executable, "-m", module, *argv], input=stdin, capture_output=True, check=False,
                          cwd="/" if module == INSTALLED else ROOT, env=environment, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(("options", "code", "words"), [
    (["--class", "h100"], 0, "PASS: peak busbw 468.4 GB/s is 97.6% of 480 GB/s"),
    (["--min-busbw", "600"], 2, "SLOW: "),
    ([], 3, "INCOMPLETE: whole run, data checked"),
])
def test_the_three_exit_codes(options: list[str], code: int, words: str) -> None:
    got = gate("judge", str(LOG), *options)
    assert got[0] == code and got[1].startswith(words) and got[2] == ""


def test_installed_and_from_the_standard_input() -> None:
    code, out, _ = gate("judge", "-", "--min-busbw", "400", "--json", module=INSTALLED, stdin=LOG.read_bytes())
    assert code == 0 and json.loads(out)["subject"] == "standard input"


def test_errors_are_no_verdict_and_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv, words in (
        (["judge", str(tmp_path / "none")], "none: got No such file or directory, wanted a log that can be read"),
        (["judge", str(LOG), "--class", "x"], "--class: got 'x', wanted one of"),
        (["judge", str(LOG), "--min-busbw", "0"], "min_busbw_gbps: got 0.0, wanted more than 0"),
        (["judge", str(LOG), "--set", "nics=1"], "--set: got no --class"),
        (["report", str(LOG)], "wanted a stored search (a log goes to: judge LOG)"),
        (["report", str(tmp_path / "none")], "wanted a file that can be read"),
        (["judge", str(LOG), "--html", str(tmp_path)], "wanted a file that can be written"),
    ):
        assert cli.main(argv) == 3
        assert words in capsys.readouterr().err
    for usage in (["judge"], [], ["judge", str(LOG), "--min-busbw", "x"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(usage)
        assert ended.value.code == 3


def test_a_stored_search_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, xml = tmp_path / "r.html", tmp_path / "r.xml"
    assert cli.main(["report", str(CASE), "--html", str(page), "--junit", str(xml)]) == 2
    assert capsys.readouterr().out.startswith("FAIL (SIMULATED): gb200-03 is slow")
    assert "gb200-03" in page.read_text(encoding="utf-8")
    assert ElementTree.parse(xml).getroot()[0].get("failures") == "2"


def test_a_log_cannot_drive_the_terminal() -> None:
    document = {"verdict": {"label": "X", "reason": "\x1b[2J\nPASS"}, "limits": [], "causes": [], "not_judged": []}
    assert cli.text(document) == "X: ?[2J?PASS\n"
