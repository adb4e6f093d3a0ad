# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import config_changes
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.versions import parse

from . import fleet

FILES = fleet.render(fleet.prod(l40s=16, epyc=16)).files
OLD, MIDDLE, NEW = "22.05.8", "23.11.4", "24.11.5"


def decide(name: str, old: str, new: str, version: str) -> tuple[str, str, list[str]]:
    assert old in FILES[name]
    found = config_changes.changes(FILES, {**FILES, name: FILES[name].replace(old, new)})
    return config_changes.decide(parse(version), found)


TAKE, CTLD, ALL, NO = ("reconfigure", "none"), ("restart", "none"), ("restart", "restart"), ("none", "none")
# (file, text, another text, (slurmctld, slurmd) with 22.05, with 23.11, with 24.11): the table of 3.5.
TABLE = [
    ("slurm.conf", "Default=YES MaxTime=INFINITE", "Default=YES MaxTime=60", TAKE, TAKE, TAKE),
    ("slurm.conf", "HealthCheckInterval=300", "HealthCheckInterval=600", TAKE, TAKE, TAKE),
    ("slurm.conf", "CR_Core_Memory", "CR_CPU_Memory", CTLD, TAKE, TAKE),
    ("slurm.conf", "StateSaveLocation=/var/lib", "StateSaveLocation=/srv", CTLD, TAKE, TAKE),
    ("slurm.conf", "SlurmctldHost=ctl2\n", "", CTLD, TAKE, TAKE),
    ("slurm.conf", "GresTypes=gpu", "GresTypes=gpu,nic", ALL, TAKE, TAKE),
    ("slurm.conf", "AuthType=auth/munge", "AuthType=auth/slurm", ALL, ALL, ALL),
    ("slurm.conf", "AuthType=", "SlurmctldPort=6820\nAuthType=", ALL, ALL, ALL),
    ("slurm.conf", "SwitchType=switch/nvidia_imex\n", "", ALL, ALL, ALL),
    # A node more: a reconfigure is enough from 24.11 on.
    ("slurm.conf", "epyc-[01-16]", "epyc-[01-17]", ALL, ALL, TAKE),
    ("slurm.conf", "RealMemory=770048", "RealMemory=700000", ALL, TAKE, TAKE),
    ("gres.conf", "Cores=0-71", "Cores=0-70", ALL, TAKE, TAKE),
    ("topology.conf", "BlockSizes=16", "BlockSizes=8", TAKE, TAKE, TAKE),
    ("cgroup.conf", "ConstrainCores=yes", "ConstrainCores=no", TAKE, TAKE, TAKE),
    ("slurmdbd.conf", "StorageLoc=slurm_acct_db", "StorageLoc=other", NO, NO, NO),
    ("slurm.conf", "# For Slurm", "# With Slurm", NO, NO, NO),
    ("gres.conf", "AutoDetect=off\n", "# nothing else\nAutoDetect=off  # really\n", NO, NO, NO),
]


@pytest.mark.parametrize(("name", "before", "after", "old", "middle", "new"), TABLE)
def test_the_table(name: str, before: str, after: str, old: tuple[str, str], middle: tuple[str, str],
                   new: tuple[str, str]) -> None:
    assert [decide(name, before, after, version)[:2] for version in (OLD, MIDDLE, NEW)] == [old, middle, new]


def test_reasons() -> None:
    assert decide("slurm.conf", "epyc-[01-16]", "epyc-[01-15,17]", NEW)[2] == [
        "nodes new: epyc-17: reconfigure", "nodes gone: epyc-16: reconfigure", "partition cpu: reconfigure"]
    assert decide("slurm.conf", "RealMemory=770048", "RealMemory=700000", OLD)[2] == [
        "nodes that differ: epyc-[01-16]: restart, slurmd too"]
    assert decide("slurm.conf", "ReturnToService=1", "ReturnToService=2", NEW)[2] == [
        "returntoservice: 1 -> 2: reconfigure"]
    assert decide("slurm.conf", "GresTypes=gpu\n", "", NEW)[2] == ["grestypes: gpu -> not set: reconfigure"]


def test_one_address_of_a_list_is_one_node() -> None:
    old = {"slurm.conf": "NodeName=n[1-3] NodeAddr=192.0.2.[1-3] RealMemory=1000\n"}
    new = {"slurm.conf": "NodeName=n[1-4] NodeAddr=192.0.2.[1-2,9,4] RealMemory=1000\n"}
    assert [change.text for change in config_changes.changes(old, new)] == ["nodes new: n4", "nodes that differ: n3"]


def test_another_order_of_lines_is_no_change() -> None:
    lines = FILES["slurm.conf"].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("NodeName=l40s"))
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    assert config_changes.changes(FILES, {**FILES, "slurm.conf": "\n".join(lines) + "\n"}) == []


def test_files_that_come_and_go() -> None:
    without = {name: text for name, text in FILES.items() if name != "topology.conf"}
    assert [change.text for change in config_changes.changes(FILES, without)] == ["topology.conf"]
    assert [change.kind for change in config_changes.changes({}, {"job_submit.conf": "A=1\n"})] == ["file"]
    assert {change.kind for change in config_changes.changes({}, FILES)} == {
        "key", "nodes", "partition", "gres", "topology", "cgroup", "dbd"}


def test_a_broken_old_file_is_all_change() -> None:
    found = config_changes.changes({"slurm.conf": "<html>\n"}, FILES)
    assert {change.kind for change in found} >= {"nodes", "partition", "key"}


def test_every_row_has_a_source() -> None:
    rows = [*config_changes.KEYS.values(), *config_changes.KINDS.values()]
    assert all(row.source for row in rows)
    assert all(key == key.lower() for key in config_changes.KEYS)
