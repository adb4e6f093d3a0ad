# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run with nothing to change costs (tests/budgets.yml), counted outside of the product."""
from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration.conftest import CLASS_HOSTS, ROOT, Lab

BUDGETS = yaml.safe_load((ROOT / "tests" / "budgets.yml").read_text(encoding="utf-8"))
HOSTS = [name for names in CLASS_HOSTS.values() for name in names]
# mlx5 devices in lab/hardware/shapes.
DEVICES = {"gb1": 4, "l40s1": 2, "epyc1": 1}


def counting_ssh(folder: Path) -> tuple[Path, Path]:
    """A program that notes its arguments and is ssh."""
    log, program = folder / "calls", folder / "ssh"
    note = f'printf "%s\\n" "$(printf "%s " "$@" | tr -d "\\n")" >> {log}'
    program.write_text(f'#!/bin/sh\n{note}\nexec {shutil.which("ssh")} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program, log


def addresses(lab: Lab) -> dict[str, str]:
    groups = yaml.safe_load((lab.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]["children"].values()
    return {str(entry["ansible_host"]): name for group in groups for name, entry in (group.get("hosts") or {}).items()
            if entry and "ansible_host" in entry}


@pytest.mark.slow  # two runs of the fabric
def test_remote_calls_of_a_run_without_changes(configured: Lab, tmp_path: Path) -> None:
    assert configured.play("playbooks/fabric.yml").code == 0
    program, log = counting_ssh(tmp_path)
    done = configured.play("playbooks/fabric.yml", "-e", f"ansible_ssh_executable={program}")
    assert done.code == 0, done.text[-4000:]
    assert done.changed() == {}
    where = addresses(configured)
    calls = Counter(where[word] for line in log.read_text(encoding="utf-8").splitlines() if "-O " not in line
                    for word in line.split() if word in where)
    assert sorted(calls) == sorted(HOSTS)
    canaries = {names[0] for names in CLASS_HOSTS.values()}
    over = {host: count for host, count in calls.items()
            if count > BUDGETS["remote_calls_per_host"] + BUDGETS["remote_calls_per_canary"] * (host in canaries)}
    assert over == {}, calls


# A start-up file of the host's Python: each program that a module starts, with the module's process. A module is what
# Ansible pipes into a bare interpreter.
HOOK = """
import os, sys
if open("/proc/self/cmdline", "rb").read() == b"/usr/bin/python3\\0":
    def note(event, arguments):
        if event == "subprocess.Popen":
            with open("/run/programs", "a") as log:
                log.write(f"{os.getpid()} {' '.join(map(str, arguments[1]))}\\n")
    sys.addaudithook(note)
"""
SITE = "/usr/lib/python3/dist-packages"


@pytest.fixture
def counted(configured: Lab) -> Iterator[Lab]:
    for host in DEVICES:
        configured.inside(host, "sh", "-c", f"printf '%s' {shlex.quote(HOOK)} > {SITE}/count_programs.py; "
                                            f"echo 'import count_programs' > {SITE}/count.pth")
    yield configured
    for host in DEVICES:
        configured.inside(host, "rm", "-f", f"{SITE}/count.pth", f"{SITE}/count_programs.py", "/run/programs")


@pytest.mark.slow
def test_programs_of_each_call(counted: Lab) -> None:
    limit = ("playbooks/fabric.yml", "--limit", ",".join(DEVICES))
    assert counted.play(*limit).code == 0
    for host in DEVICES:
        counted.inside(host, "rm", "-f", "/run/programs")
    done = counted.play(*limit)
    assert done.code == 0 and done.changed() == {}
    for host, devices in DEVICES.items():
        calls: dict[str, list[str]] = {}
        for line in counted.inside(host, "cat", "/run/programs").stdout.splitlines():
            pid, program = line.split(" ", 1)
            calls.setdefault(pid, []).append(program)
        # Five roles ask tools; the counter counts.
        assert len(calls) >= 4 and max(map(len, calls.values())) >= 3
        budget = BUDGETS["programs_per_call"] + BUDGETS["programs_per_device"] * devices
        over = [programs for programs in calls.values() if len(programs) > budget]
        assert over == [], f"{host}: budget {budget}"
