# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Slurm cluster of test_slurm.py, asked by Slurm's and MariaDB's own commands."""
from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.lab_plugin import Lab, Labs, Play

NAME, FLEET = "slurm", "tests/integration/fleets/slurm.yml"
CTL, NODES = "sctl", ["sg1", "sg2", "sl1", "sl2"]
GB200, L40S = NODES[:2], NODES[2:]
# The rails' addresses, which the NCCL profile is made of.
RAILS = """\
- hosts: gb200:l40s
  gather_facts: false
  roles:
    - role: aidc.gpu_cluster.rdma_stack
    - role: aidc.gpu_cluster.rail_network
"""


@contextlib.contextmanager
def bare_hosts(labs: Labs, folder: Path, nodes: list[str], name: str = NAME) -> Iterator[Lab]:
    """Hosts with rails and repositories and nothing of Slurm's; ``nodes`` are in the cluster."""
    with labs.during(name, FLEET) as lab:
        members(lab, nodes)
        play = folder / "rails.yml"
        play.write_text(RAILS, encoding="utf-8")
        for playbook in ("playbooks/packages.yml", str(play)):
            done = lab.play(playbook)
            assert done.code == 0, done.text[-4000:]
        yield lab


def members(lab: Lab, hosts: list[str]) -> None:
    """The group slurm_compute of the inventory."""
    file = lab.inventory / "hosts.yml"
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    data["all"]["children"]["slurm_compute"] = {"hosts": dict.fromkeys(hosts)}
    file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


def slurm(lab: Lab, *argv: str, code: int | None = 0, **extra: Any) -> Play:
    arguments = ["-e", json.dumps(extra)] if extra else []
    done = lab.play("playbooks/slurm.yml", *argv, *arguments)
    assert code is None or done.code == code, messages(done) or done.text[-4000:]
    return done


def out(lab: Lab, host: str, *argv: str) -> str:
    return lab.inside(host, *argv).stdout.strip()


def states(lab: Lab) -> dict[str, str]:
    lines = out(lab, CTL, "sinfo", "-h", "-N", "-o", "%N %T").splitlines()
    return dict(line.split() for line in lines)


def wait(read: Callable[[], Any], wanted: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while read() != wanted:
        assert time.monotonic() < deadline, f"got {read()}, wanted {wanted}"
        time.sleep(1)


def idle(lab: Lab, hosts: list[str]) -> None:
    wait(lambda: states(lab), dict.fromkeys(hosts, "idle"))


def starts(lab: Lab) -> dict[str, str]:
    """When each daemon was started. A reconfiguration is no start, though 24.11 has a new process after it."""
    found = {}
    for host, units in ((CTL, "munge mariadb slurmdbd slurmctld"), *((node, "munge slurmd") for node in NODES)):
        for unit in units.split():
            found[f"{host} {unit}"] = out(lab, host, "systemctl", "show", "--value", "-p",
                                          "InactiveExitTimestampMonotonic", unit)
    return found


def daemons(play: Play) -> dict[str, set[str]]:
    """What slurm_config had the daemons do, by host."""
    found: dict[str, set[str]] = {}
    for task in play.tasks:
        for host, result in task["hosts"].items():
            for command in result.get("commands") or []:
                if command[0] in ("scontrol", "systemctl"):
                    found.setdefault(host, set()).add(" ".join(command))
    return found


def messages(play: Play) -> str:
    """The words of all tasks that failed."""
    return "\n".join(f"{host}: {result.get('msg')}" for task in play.tasks
                     for host, result in task["hosts"].items() if result.get("failed"))


def accounted(lab: Lab, name: str) -> list[str]:
    query = ("SELECT job_name, nodes_alloc, state, nodelist FROM slurm_acct_db.lab_job_table "
             f"WHERE job_name='{name}' AND time_end > 0")
    return out(lab, CTL, "mariadb", "-N", "-B", "-e", query).splitlines()
