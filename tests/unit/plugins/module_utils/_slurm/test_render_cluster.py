# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.model import Host

from . import fleet


def errors(**given: t.Any) -> list[str]:
    return [finding.text() for finding in fleet.render(**given).errors]


PART = {"name": "p", "groups": ["gb200", "l40s", "epyc9754"]}


@pytest.mark.parametrize(("given", "text"), [
    ({"version": None}, "slurm_version: got 'nothing' is not a version of Slurm"),
    ({"version": "21.08.5"}, "slurm_version: got 21.08, wanted 22.05 or later"),
    ({"cluster_name": "My Cluster"}, "slurm_cluster_name: got My Cluster, wanted up to 40 of a-z"),
    ({"options": {"nodename": "x"}}, "slurm_options.nodename: got a key that follows from the inventory"),
    ({"options": {"ClusterName": "x"}}, "slurm_options.ClusterName: got a key that follows"),
    ({"options": {"SwitchType": "switch/none"}}, "slurm_options.SwitchType: got a key that follows"),
    ({"options": {"A B": 1}}, "slurm_options: got 'A B', wanted a key of slurm.conf"),
    ({"options": {"MpiDefault": "pmix\nInclude x"}},
     "slurm_options.MpiDefault: got 'pmix\\nInclude x', wanted one line"),
    ({"options": {"MpiDefault": ""}}, "slurm_options.MpiDefault: got '', wanted one line"),
    ({"options": [1]}, "slurm_options: got [1], wanted a dictionary"),
    ({"options": {"PluginDir": "/usr/lib/x86_64-linux-gnu/slurm-wlm"}}, "wanted no path of one architecture"),
    ({"options": {"Epilog2": "/usr/lib/aarch64-linux-gnu/x"}}, "wanted no path of one architecture"),
    ({"partitions": [PART, PART]}, "partition p: got two entries, wanted one"),
    ({"partitions": [{**PART, "default": True}, {"name": "q", "groups": ["l40s"], "default": True}]},
     "slurm_partitions: got the defaults p, q, wanted one default partition"),
    ({"partitions": [{**PART, "max_time": "soon"}]},
     "slurm_partitions[0].max_time: got soon, wanted INFINITE, or a time"),
    ({"partitions": [{**PART, "options": {"nodes": "ALL"}}]},
     "slurm_partitions[0].options.nodes: got a key that follows"),
    ({"partitions": [{"groups": ["gb200"]}]}, "slurm_partitions[0]: got {'groups': ['gb200']}, wanted name, groups"),
    ({"partitions": ["p"]}, "slurm_partitions[0]: got 'p', wanted name, groups"),
    ({"topology": "ring"}, "slurm_topology: got ring, wanted one of auto, block, tree, flat"),
    ({"mem_spec_limit_mib": 2_000_000}, "slurm_mem_spec_limit_mib: got 2000000, wanted less than the memory of gb200"),
])
def test_what_is_refused(given: dict[str, t.Any], text: str) -> None:
    assert any(text in found for found in errors(**given)), errors(**given)


def test_groups_that_must_have_hosts() -> None:
    inventory = dataclasses.replace(fleet.prod(), controllers=(), dbd=(Host("a"), Host("b")))
    assert errors(inventory=inventory) == ["group slurm_controller: got no host, wanted one, or two with a backup",
                                           "group slurm_dbd: got 2 hosts, wanted one or none"]
    # Controllers of others need not be in the inventory.
    assert errors(inventory=dataclasses.replace(inventory, dbd=()), ownership="include") == []
    empty = dataclasses.replace(fleet.prod(), hosts={})
    assert "group slurm_compute: got no host, wanted the hosts that Slurm shall run" in errors(inventory=empty)
    three = dataclasses.replace(fleet.prod(), controllers=tuple(map(Host, "abc")))
    assert [finding.object for finding in fleet.render(three).findings] == ["group slurm_controller"]


def test_a_partition_is_what_the_inventory_says() -> None:
    rendered = fleet.render(partitions=[
        {"name": "two", "groups": ["epyc9754", "l40s"], "max_time": "1-00:00:00", "options": {"PriorityTier": 5}},
        {"name": "train", "groups": ["gb200", "h100"], "default": True},
        {"name": "none", "groups": ["h100"]}])
    text = rendered.files["slurm.conf"]
    # In the order of the inventory, whatever the order of the groups.
    assert ("PartitionName=two Nodes=l40s-[01-16],epyc-[01-32] Default=NO MaxTime=1-00:00:00 DefMemPerCPU=2976 State=UP"
            " PriorityTier=5\n") in text
    assert "PartitionName=none" not in text
    assert [finding.text() for finding in rendered.findings] == [
        "partition none: got no group h100 in the inventory, wanted groups with compute hosts (it is left out)"]


@pytest.mark.parametrize("key", ["DefMemPerNode", "defmempergpu"])
def test_a_default_of_memory_by_hand(key: str) -> None:
    text = fleet.render(partitions=[{**PART, "options": {key: 1000, "State": "DOWN"}}]).files["slurm.conf"]
    assert f"MaxTime=INFINITE {key}=1000 State=DOWN\n" in text


def test_hosts_without_a_partition_are_told() -> None:
    rendered = fleet.render(partitions=[{"name": "train", "groups": ["gb200"]}])
    assert [(finding.severity, finding.object) for finding in rendered.findings] == [
        ("warning", "l40s-[01-16],epyc-[01-32]")]


def test_a_node_with_less_memory_than_its_class_has_its_own_line_and_a_finding() -> None:
    inventory = fleet.prod()
    inventory.records["l40s-07"]["memory"]["total_mib"] = 260_000
    rendered = fleet.render(inventory)
    line = "NodeName=l40s-07 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=257024 "
    assert line in rendered.files["slurm.conf"]
    assert [finding.text() for finding in rendered.findings] == [
        "l40s-07: RealMemory: got less than 512000 MiB, wanted as most of l40s (a memory module may be missing)"]


def test_a_reserve_of_a_host_wins() -> None:
    inventory = fleet.prod()
    inventory.hosts["epyc-32"]["slurm_memory_reserve_mib"] = 100_000  # type: ignore[index]
    assert "NodeName=epyc-32 Sockets=1 CoresPerSocket=128 ThreadsPerCore=2 RealMemory=671744 " in fleet.render(
        inventory).files["slurm.conf"]


def test_a_host_of_no_known_shape_refuses_and_the_others_are_still_judged() -> None:
    inventory = fleet.prod()
    del inventory.records["l40s-03"], inventory.records["l40s-04"]
    found = errors(inventory=inventory)
    assert found[0].startswith("l40s-[03-04]: facts for NodeName: got no sockets") and len(found) == 1


def test_a_name_that_is_none() -> None:
    inventory = fleet.prod(domains=0, epyc=0)
    hosts = {**inventory.hosts, "a b": fleet.EPYC}
    with_bad = dataclasses.replace(inventory, hosts=hosts, records={**inventory.records, "a b": fleet.record(
        "x86_64", 1, 8, 8, 64_000)})
    assert any("a b: got other characters" in text for text in errors(inventory=with_bad))
