# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import hashlib
import time
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import check, config_parse, hostlist

from . import fleet

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = ("22.05", "24.11", "25.05")


def golden(name: str) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in (GOLDEN / name).iterdir()}


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_files(version: str) -> None:
    rendered = fleet.render(version=f"{version}.5")
    assert rendered.files == golden(version)
    assert rendered.errors == []
    assert [finding.object for finding in rendered.findings] == (["slurm_version"] if version == "22.05" else [])


def test_golden_parts_for_a_cluster_of_others() -> None:
    rendered = fleet.render(ownership="include")
    assert rendered.files == golden("include")
    assert {finding.severity for finding in rendered.findings} == {"note"}
    assert rendered.findings[0].wanted == "Include aidc-nodes.conf; Include aidc-partitions.conf; GresTypes=gpu"
    assert rendered.result()["absent"] == []


def test_what_each_version_has() -> None:
    """Said once more in words, so that a golden file is not just copied."""
    old, now, new = (golden(name) for name in VERSIONS)
    assert "TopologyPlugin=topology/tree\n" in old["slurm.conf"] and "imex" not in old["slurm.conf"]
    assert "TopologyPlugin=topology/block\nSwitchType=switch/nvidia_imex\n" in now["slurm.conf"]
    assert "TopologyPlugin" not in new["slurm.conf"] and " Topology=nvlink\n" in new["slurm.conf"]
    assert "topology.conf" not in new and "topology.yaml" not in now
    for files in (old, now, new):
        assert "StoragePass=" not in "".join(files.values()).replace("# One line, StoragePass=...", "")
        assert "Feature=gb200,arm64,nvl1" in files["slurm.conf"] and "Feature=epyc9754,amd64" in files["slurm.conf"]


@pytest.mark.parametrize(("version", "line"), [
    ("22.05", "CgroupPlugin=cgroup/v1"), ("23.02", "CgroupPlugin=disabled"), ("24.11", "CgroupPlugin=disabled")])
def test_without_cgroups(version: str, line: str) -> None:
    files = fleet.render(version=version, cgroup="disabled").files
    assert files["cgroup.conf"].splitlines()[1:] == [line]
    for text in ("ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "PrologFlags=Alloc\n"):
        assert text in files["slurm.conf"]
    # Nobody would keep to it.
    assert "MemSpecLimit" not in files["slurm.conf"] and "DefMemPerCPU=6798 " in files["slurm.conf"]


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_cgroups_that_are_chosen(kind: str) -> None:
    assert f"CgroupPlugin=cgroup/{kind}\n" in fleet.render(cgroup=kind).files["cgroup.conf"]


def test_nothing_of_gpus_where_there_are_none() -> None:
    inventory = fleet.prod(domains=0, l40s=0)
    rendered = fleet.render(inventory)
    assert set(rendered.files) == {"slurm.conf", "cgroup.conf", "slurmdbd.conf"}
    assert "Gres" not in rendered.files["slurm.conf"] and "imex" not in rendered.files["slurm.conf"]
    assert rendered.result()["absent"] == ["topology.conf", "topology.yaml", "gres.conf"]


def test_addresses_for_names_that_do_not_resolve() -> None:
    inventory = fleet.prod(domains=0, l40s=0, epyc=3)
    for number, values in enumerate(inventory.hosts.values(), 8):
        values["slurm_node_address"] = f"192.0.2.{number}"  # type: ignore[index]
    controllers = (fleet.Host("ctl1", "192.0.2.1"),)
    rendered = fleet.render(dataclasses.replace(inventory, controllers=controllers, dbd=controllers))
    assert "NodeName=epyc-[01-03] NodeAddr=192.0.2.[8-10] Sockets=1" in rendered.files["slurm.conf"]
    assert "SlurmctldHost=ctl1(192.0.2.1)\n" in rendered.files["slurm.conf"]
    assert "AccountingStorageHost=192.0.2.1\n" in rendered.files["slurm.conf"]
    assert "DbdHost=ctl1\nDbdAddr=192.0.2.1\n" in rendered.files["slurmdbd.conf"]
    assert rendered.errors == []


def test_options_of_the_site_come_last_and_replace_defaults() -> None:
    options = {"ReturnToService": 2, "MpiDefault": "pmix", "DisableRootJobs": True}
    text = fleet.render(options=options).files["slurm.conf"]
    assert "\nReturnToService=2\nMpiDefault=pmix\nDisableRootJobs=yes\n" in text
    assert text.count("ReturnToService") == 1


def test_digests() -> None:
    result = fleet.render().result()
    found = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in result["files"].items()}
    assert found == result["sha256"]


def test_the_files_hold_the_whole_inventory() -> None:
    """Counted in the texts, and not by what rendered them."""
    for files in map(golden, VERSIONS):
        lines = config_parse.lines(files["slurm.conf"])
        nodes = [name for line in lines for name in hostlist.expand(line.get("nodename") or "")]
        assert len(nodes) == len(set(nodes)) == 84
        parts = {line.get("partitionname"): hostlist.expand(line.get("nodes") or "")
                 for line in lines if line.get("partitionname")}
        assert {name: len(members) for name, members in parts.items()} == {"train": 36, "infer": 16, "cpu": 32}
        gpus: dict[str, list[str]] = {}
        for line in config_parse.lines(files["gres.conf"])[1:]:
            for name in hostlist.expand(line.get("nodename") or ""):
                gpus.setdefault(name, []).extend(hostlist.expand(line.get("file") or "", hostlist.FILE))
        assert len(gpus) == 52 and {tuple(found) for found in gpus.values()} == {
            tuple(f"/dev/nvidia{number}" for number in range(4))}
        assert check.texts(files) == []


def _seconds(count: int) -> float:
    inventory = fleet.prod(domains=count // 36, l40s=count // 4, epyc=count // 4, digits=5)
    start = time.process_time()
    rendered = fleet.render(inventory)
    seconds = time.process_time() - start
    assert rendered.errors == []
    # All of them are there: as long as a class has one shape its line does not grow with it.
    assert len(rendered.result()["nodes"]) == len(inventory.hosts)
    assert rendered.files["slurm.conf"].count("PartitionName") == 3
    return seconds


def test_ten_thousand_nodes_in_seconds_and_linear() -> None:
    small, large = min(_seconds(1_000) for _ in range(3)), _seconds(10_000)
    assert large < 10
    assert large < 30 * small, f"{small:.2f} s for 1,000 nodes, {large:.2f} s for 10,000"
