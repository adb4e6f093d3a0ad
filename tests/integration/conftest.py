# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab of the tests' own beside whatever lab the user runs: started once, removed at the end."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import testinfra

from lab.instance import Instance

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
NAME = "test"
CLASS_HOSTS = {"gb200": ["gb1", "gb2", "gb3", "gb4"], "l40s": ["l40s1", "l40s2"], "epyc9754": ["epyc1"]}


def lab_command(*argv: str, name: str = NAME) -> list[str]:
    return [sys.executable, "-m", "lab", "--name", name, *argv]


@dataclass(frozen=True)
class Play:
    """What a run of ansible-playbook came to."""

    code: int
    text: str
    tasks: list[dict[str, Any]]
    stats: dict[str, dict[str, int]]

    def changed(self) -> dict[str, int]:
        return {host: numbers["changed"] for host, numbers in self.stats.items() if numbers["changed"]}

    def results(self, action: str) -> dict[str, dict[str, Any]]:
        """Results of the (last) task with this action, by host."""
        found: dict[str, dict[str, Any]] = {}
        for task in self.tasks:
            for host, result in task["hosts"].items():
                if result.get("action") == action:
                    found[host] = result
        return found


@dataclass(frozen=True)
class Lab:
    instance: Instance
    inventory: Path

    def host(self, name: str) -> Any:
        """The host over SSH as a user would reach it, with sudo."""
        config = self.instance.dir / "ssh_config"
        return testinfra.get_host(f"ssh://{name}", ssh_config=str(config), sudo=True)

    def inside(self, name: str, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """As root in the host, not over SSH: for what a test does behind our back."""
        done = subprocess.run(lab_command("exec", name, *argv), cwd=ROOT, capture_output=True, text=True,
                              check=False, timeout=60)
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done

    def play(self, *argv: str, timeout: float = 300) -> Play:
        """ansible-playbook as the README tells it, with a result that can be read by a program."""
        environment = {
            **os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        }
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([str(BIN / "ansible-playbook"), "-i", str(self.inventory), *argv], cwd=ROOT,
                              env=environment, capture_output=True, text=True, check=False, timeout=timeout,
                              stdin=subprocess.DEVNULL)
        text = done.stdout + done.stderr
        try:
            data = json.loads(done.stdout[done.stdout.index("{"):])
        except ValueError:
            return Play(done.returncode, text, [], {})
        tasks = [task for play in data["plays"] for task in play["tasks"]]
        return Play(done.returncode, text, tasks, data["stats"])


def run_lab(*argv: str, name: str = NAME) -> None:
    done = subprocess.run(lab_command(*argv, name=name), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"lab {' '.join(argv)}: {done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    run_lab("down")
    inventory = tmp_path_factory.mktemp("inventory")
    run_lab("up", "--inventory", str(inventory))
    yield Lab(Instance(NAME), inventory)
    run_lab("down")


@pytest.fixture(scope="session")
def configured(lab: Lab) -> Lab:
    """The lab after a first site.yml."""
    done = lab.play("site.yml")
    assert done.code == 0, done.text[-4000:]
    return lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """test_site starts from bare hosts, so it comes before whoever needs them configured."""
    items.sort(key=lambda item: item.path.name != "test_site.py")
