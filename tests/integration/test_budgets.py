# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run with nothing to change costs (tests/budgets.yml), counted outside of the product."""
from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.integration.conftest import CLASS_HOSTS, ROOT, Lab

BUDGETS = yaml.safe_load((ROOT / "tests" / "budgets.yml").read_text(encoding="utf-8"))
HOSTS = [name for names in CLASS_HOSTS.values() for name in names]
# mlx5 devices in lab/hardware/shapes.
DEVICES = {"gb1": 4, "l40s1": 2, "epyc1": 1}
ROLES = ("rdma_stack", "mlx5_nvconfig", "rail_network", "mlx5_port", "roce_qos", "roce_gid")


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
    assert max(calls.values()) <= BUDGETS["remote_calls_per_host"], calls


def next_pid(lab: Lab, host: str) -> int:
    """The host's processes are numbered one after the other in a namespace of its own."""
    return int(lab.inside(host, "sh", "-c", "echo $$").stdout)


def started(lab: Lab, host: str, *argv: str) -> int:
    """Processes that the host started during a run; the least of three, as its services start some of their own."""
    found = []
    for _time in range(3):
        before = next_pid(lab, host)
        done = lab.play(*argv, "--limit", host)
        assert done.code == 0 and done.changed() == {}, done.text[-2000:]
        found.append(next_pid(lab, host) - before)
    return min(found)


PING = "[{hosts: all, gather_facts: false, become: true, tasks: [{name: One call, ansible.builtin.ping: {}}]}]\n"


@pytest.mark.parametrize("host", sorted(DEVICES))
def test_programs_of_each_call(configured: Lab, tmp_path: Path, host: str) -> None:
    ping = tmp_path / "ping.yml"
    ping.write_text(PING, encoding="utf-8")
    assert configured.play("playbooks/fabric.yml", "--limit", host).code == 0
    bare = started(configured, host, str(ping))
    used = {role: started(configured, host, "playbooks/fabric.yml", "--tags", f"{role}_install,{role}_configure") - bare
            for role in ROLES}
    budget = BUDGETS["programs_per_call"] + BUDGETS["programs_per_device"] * DEVICES[host]
    over = {role: count for role, count in used.items() if count > budget}
    assert over == {}, f"{host}: budget {budget}, got {used}"
    # The counter counts: these modules ask several tools each.
    assert used["mlx5_port"] >= 3
