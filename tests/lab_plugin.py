# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs of the tests' own, beside whatever lab the user runs. A conftest takes the fixture with

    from tests.lab_plugin import labs

and a test asks for ``labs("mytest", "tests/integration/fleets/small.yml")``: started once in a session,
removed at its end, whatever happened; or for ``labs.during(...)``, removed at the end of the block.
Nothing here passes over no hosts: a group, a play or a run without hosts is a failure.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml

from lab.instance import Instance
from tests import snapshot

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv" / "bin"
LOCALHOST = "localhost"
# playbooks/fabric.yml: a small fleet has no tenth, and one of single hosts no rest. Most fleets have no Slurm.
BATCHES = re.compile(r"RoCE fabric of the nodes, batch: (tenth|rest)\b|Slurm: ")


def some_hosts(found: Sequence[str], what: str) -> list[str]:
    """``found`` when there is a host in it; what is said of no hosts is said of nothing."""
    # A host may be in several groups.
    hosts = sorted(set(found))
    assert hosts, f"{what}: got no hosts, wanted at least one"
    return hosts


@dataclass(frozen=True)
class Play:
    """What a run of ansible-playbook came to."""

    code: int
    text: str
    tasks: list[dict[str, Any]]
    stats: dict[str, dict[str, int]]
    # Names of the plays in which no task met a host.
    idle: list[str] = field(default_factory=list)

    def changed(self) -> dict[str, int]:
        return {host: numbers["changed"] for host, numbers in self.stats.items() if numbers["changed"]}

    def hosts(self) -> list[str]:
        """The hosts that were met, without the controller itself; fails when there are none."""
        return some_hosts([host for host in self.stats if host != LOCALHOST], "the run of ansible-playbook")

    def results(self, action: str) -> dict[str, dict[str, Any]]:
        """Results of the (last) task with this action, by host."""
        found: dict[str, dict[str, Any]] = {}
        for task in self.tasks:
            for host, result in task["hosts"].items():
                if result.get("action") == action:
                    found[host] = result
        return found

    def check_hosts(self) -> None:
        """A run that ended well must have met a host, and so must each of its plays."""
        if self.code == 0:
            some_hosts(list(self.stats), f"ansible-playbook (exit status 0)\n{self.text[-2000:]}")
            assert not self.idle, f"got plays that met no host: {', '.join(self.idle)}\n{self.text[-2000:]}"


def read_play(code: int, stdout: str, stderr: str) -> Play:
    """The result out of what the callback ansible.posix.json printed."""
    text = stdout + stderr
    try:
        # A callback of ours may say something behind it.
        data, _end = json.JSONDecoder().raw_decode(stdout[stdout.index("{"):])
    except ValueError:
        return Play(code, text, [], {})
    idle = [play["play"]["name"] for play in data["plays"] if not any(task["hosts"] for task in play["tasks"])
            and not BATCHES.match(play["play"]["name"])]
    return Play(code, text, [task for play in data["plays"] for task in play["tasks"]], data["stats"], idle)


@dataclass(frozen=True)
class Lab:
    instance: Instance
    inventory: Path

    def hosts(self, group: str = "all") -> list[str]:
        """The hosts of a group in the inventory that `lab up` wrote; fails when there are none."""
        data = yaml.safe_load((self.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]["children"]
        groups = [hosts for name, hosts in data.items() if group in ("all", name)]
        return some_hosts([host for entry in groups for host in entry.get("hosts") or {}], f"group {group}")

    def host(self, name: str) -> Any:
        """The host over SSH as a user would reach it, with sudo."""
        config = self.instance.dir / "ssh_config"
        return testinfra.get_host(f"ssh://{name}", ssh_config=str(config), sudo=True)

    def inside(self, name: str, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """As root in the host, not over SSH: for what a test does behind our back."""
        done = subprocess.run(lab_command("exec", name, *argv, name=self.instance.name), cwd=ROOT,
                              capture_output=True, text=True, check=False, timeout=60)
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done

    def snapshot(self, name: str) -> snapshot.State:
        """Files, network and services of the host; compare two with ``snapshot.difference``."""
        return snapshot.take(self.instance.name, name)

    def play(self, *argv: str, timeout: float = 300, may_meet_nobody: bool = False) -> Play:
        """ansible-playbook as the README tells it, with a result that can be read by a program.

        A play that met no host ("skipping: no hosts matched") fails here, unless ``may_meet_nobody``.
        """
        environment = {
            **os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        }
        environment.pop("PYTHONPATH", None)
        done = subprocess.run([str(BIN / "ansible-playbook"), "-i", str(self.inventory), *argv], cwd=ROOT,
                              env=environment, capture_output=True, text=True, check=False, timeout=timeout,
                              stdin=subprocess.DEVNULL)
        play = read_play(done.returncode, done.stdout, done.stderr)
        if not may_meet_nobody:
            play.check_hosts()
        return play


def lab_command(*argv: str, name: str) -> list[str]:
    return [sys.executable, "-m", "lab", "--name", name, *argv]


def run_lab(*argv: str, name: str) -> None:
    done = subprocess.run(lab_command(*argv, name=name), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"lab {' '.join(argv)}: {done.stdout}{done.stderr}"


class Labs:
    """The labs of a session by instance name; one that is there is used again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fleets: dict[str, str] = {}
        # Those that a test has configured and left so.
        self.converged: set[str] = set()

    def __call__(self, name: str, fleet: str | Path = "default") -> Lab:
        lab = Lab(Instance(name), self.folder / name)
        if name not in self.fleets:
            run_lab("down", name=name)
            # Before `up`: what a failed one leaves is removed, too.
            self.fleets[name] = str(fleet)
            run_lab("up", "--fleet", str(fleet), "--inventory", str(lab.inventory), name=name)
        assert self.fleets[name] == str(fleet), f"lab {name}: got fleet {fleet}, runs with {self.fleets[name]}"
        lab.hosts()
        return lab

    @contextmanager
    def during(self, name: str, fleet: str | Path) -> Iterator[Lab]:
        """A lab for the time of a module: hosts that nobody needs take inotify instances from others."""
        try:
            yield self(name, fleet)
        finally:
            self.fleets.pop(name, None)
            self.converged.discard(name)
            run_lab("down", name=name)

    def close(self) -> None:
        """Remove them all, those after one that cannot be removed included."""
        failures = []
        for name in reversed(self.fleets):
            try:
                run_lab("down", name=name)
            except AssertionError as error:
                failures.append(str(error))
        self.fleets.clear()
        assert not failures, "\n".join(failures)


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    factory = Labs(tmp_path_factory.mktemp("labs"))
    try:
        yield factory
    finally:
        factory.close()
