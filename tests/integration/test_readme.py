# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command of the README: run here in a clean clone, or named below with the test that runs it."""
from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.state import state_dir
from tests import tiers
from tests.integration.test_recipes import commands as recipe_commands
from tests.lab_plugin import ROOT

STARTS = ("make ", "./lab/lab", "ansible-playbook", ".venv/bin/")
# A site's own inventory; here the lab's stands in for it.
SITE = "inventories/prod"
# Not run here, with who runs it.
ELSEWHERE = {
    "make test": "CI runs it",
    "make full": "it runs this test",
    "make fresh": "it needs an hour and runs `make test lab lab-down`",
    "ansible-playbook playbooks/discover.yml -i host1,host2,": "tests/integration/test_discover.py",
    "make sim": "minutes to an hour; its figures are in tests/sim/RESULTS.md",
    **{f"make {name}": "a part of make test or make full" for name in (*tiers.RUNS["test"], "fuzz", "faults")},
}


def readme() -> list[str]:
    """Commands in code blocks and in first columns of tables, in order, without comments."""
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    found = []
    for line in text.splitlines():
        block, row = re.fullmatch(r"    (\S.*)", line), re.match(r"\| (.*?) \|", line)
        cells = [block[1]] if block else re.findall(r"`([^`]+)`", row[1]) if row else []
        found += [re.sub(r"\s+#.*", "", cell).strip() for cell in cells if cell.startswith(STARTS)]
    return list(dict.fromkeys(found))


def kind(command: str) -> str:
    if command in ELSEWHERE:
        return "elsewhere"
    # The tier gives it a box of time on top.
    if command == ".venv/bin/" + " ".join(tiers.TIERS["molecule"].commands[0][:3]):
        return "elsewhere"
    if any(command == f"ansible-playbook {' '.join(argv)}" for name in ("gate-only", "roce-only", "whole-site")
           for argv in recipe_commands(name)):
        return "recipe"
    return "here"


def test_the_commands_are_found() -> None:
    found = readme()
    assert {"make lab", "make test", "./lab/lab exec gb1 ibv_devinfo", "make lab-down"} <= set(found)
    assert sum(kind(command) == "recipe" for command in found) >= 4
    assert sum(kind(command) == "here" for command in found) >= 8
    # Nothing is excused that the README does not name any more, or that is no target.
    rules = re.findall(r"^([a-z0-9 -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = {name for rule in rules for name in rule.split()}
    assert {name.split()[1] for name in ELSEWHERE if name.startswith("make ")} <= targets


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clone of the last commit; `make lab` uses the lab's default name, which must be free."""
    if (state_dir() / "instances" / "lab").exists():
        pytest.fail("a lab of the default name is there: make lab-down, then run this test again")
    folder = tmp_path_factory.mktemp("readme") / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    yield folder
    subprocess.run(["./lab/lab", "down"], cwd=folder, check=False)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_every_command_works_in_the_order_of_the_readme(clone: Path) -> None:
    environment = {**os.environ, "PATH": f"{clone}/.venv/bin:{os.environ['PATH']}", "ASSUME_YES": "1"}
    environment.pop("PYTHONPATH", None)
    mine = [command for command in readme() if kind(command) == "here"]
    # The lab goes last, whatever stands behind its removal.
    for command in [*(item for item in mine if item != "make lab-down"), "make lab-down"]:
        argv = command.replace(SITE, "inventories/lab").split()
        done = subprocess.run(argv, cwd=clone, env=environment, capture_output=True, text=True, check=False,
                              timeout=900, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-2000:]}"
        assert "Traceback" not in done.stdout + done.stderr, command
