# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.render_cluster import Inventory

from . import fleet


def without(inventory: Inventory, *gone: str) -> Inventory:
    """The same without some hosts: they are out for repair, and were taken out of the inventory."""
    left = {name: one for name, one in inventory.hosts.items() if name not in gone}
    return dataclasses.replace(inventory, hosts=left)


def findings(inventory: Inventory | None = None, **given: t.Any) -> list[str]:
    return [f"{finding.severity}: {finding.text()}" for finding in fleet.render(inventory, **given).findings]


def blocks(text: str) -> dict[str, str]:
    return dict(line[10:].split(" Nodes=") for line in text.splitlines() if line.startswith("BlockName="))


@pytest.mark.parametrize(("gone", "size"), [((), 16), (("gb1-03",), 16), (("gb1-03", "gb1-04"), 16)])
def test_a_block_with_members_out_for_repair_still_plans(gone: tuple[str, ...], size: int) -> None:
    rendered = fleet.render(without(fleet.prod(), *gone))
    assert rendered.findings == []
    assert f"BlockSizes={size}\n" in rendered.files["topology.conf"]


def test_more_spares_than_planned_lower_the_size_of_all_and_say_so() -> None:
    gone = [f"gb2-{number:02d}" for number in range(10, 19)]
    rendered = fleet.render(without(fleet.prod(), *gone))
    assert "BlockSizes=9\n" in rendered.files["topology.conf"]
    assert [finding.text() for finding in rendered.findings] == [
        "nvlink_domain nvl2: got 9 nodes in the smallest, wanted 16 of 18 (the base size of all blocks is 9 "
        "because of it)"]


def test_a_size_that_a_domain_does_not_have_is_refused() -> None:
    found = findings(without(fleet.prod(epyc=18, l40s=0), "gb1-05"), block_size=18)
    assert found[0] == ("error: nvlink_domain nvl1: got 17 nodes, wanted slurm_block_size (18) or more (slurmctld "
                        "refuses a block that is smaller than the base size: lower slurm_block_size)")
    assert "BlockSizes=18" in fleet.render(block_size=18, topology="block").files["topology.conf"]


def test_nodes_outside_of_domains_have_blocks_before_25_05() -> None:
    """Else nothing would ever run on them."""
    text = fleet.render(fleet.prod(l40s=20, epyc=50)).files["topology.conf"]
    assert blocks(text) == {
        "nvl1": "gb1-[01-18]", "nvl2": "gb2-[01-18]", "l40s-1": "l40s-[01-20]", "epyc9754-1": "epyc-[01-16]",
        "epyc9754-2": "epyc-[17-32]", "epyc9754-3": "epyc-[33-50]"}


def test_classes_that_are_too_small_share_a_block() -> None:
    text = fleet.render(fleet.prod(l40s=9, epyc=8)).files["topology.conf"]
    assert blocks(text)["rest"] == "l40s-[01-09],epyc-[01-08]"


def test_few_nodes_join_another_block() -> None:
    rendered = fleet.render(fleet.prod(l40s=16, epyc=3))
    assert blocks(rendered.files["topology.conf"])["l40s-1"] == "l40s-[01-16],epyc-[01-03]"
    assert rendered.findings == []
    rendered = fleet.render(fleet.prod(l40s=2, epyc=1))
    assert blocks(rendered.files["topology.conf"])["nvl2"] == "gb2-[01-18],l40s-[01-02],epyc-01"
    assert "BlockSizes=16" in rendered.files["topology.conf"]
    assert [finding.severity for finding in rendered.findings] == ["warning"]
    assert rendered.findings[0].object == "block nvl2"


def test_small_domains_of_a_lab() -> None:
    """Two trays a domain: no spares, and the other hosts share a block."""
    inventory = fleet.prod(domains=2, trays=2, l40s=2, epyc=1)
    for values in inventory.hosts.values():
        if "nvlink_domain" in values:
            values["node_class_nvlink_domain_trays"] = 2  # type: ignore[index]
    rendered = fleet.render(inventory)
    assert rendered.files["topology.conf"].splitlines()[1:] == [
        "BlockName=nvl1 Nodes=gb1-[01-02]", "BlockName=nvl2 Nodes=gb2-[01-02]",
        "BlockName=l40s-1 Nodes=l40s-[01-02],epyc-01",
        "BlockSizes=2"]
    assert rendered.findings == []


def test_the_yaml_is_yaml() -> None:
    rendered = fleet.render(version="25.05.1", partitions=[
        {"name": "train", "groups": ["gb200"], "default": True},
        {"name": "all", "groups": ["gb200", "l40s", "epyc9754"]}])
    flat, nvlink = yaml.safe_load(rendered.files["topology.yaml"])
    assert flat == {"topology": "flat", "cluster_default": True, "flat": True}
    assert nvlink == {"topology": "nvlink", "cluster_default": False, "block": {"block_sizes": [16], "blocks": [
        {"block": "nvl1", "nodes": "gb1-[01-18]"}, {"block": "nvl2", "nodes": "gb2-[01-18]"}]}}
    lines = {line.split()[0]: line for line in rendered.files["slurm.conf"].splitlines() if line.startswith("Part")}
    assert "Topology=nvlink" in lines["PartitionName=train"] and "Topology" not in lines["PartitionName=all"]
    assert [finding.text() for finding in rendered.findings] == [
        "partition all: got nodes inside and outside of NVLink domains, wanted one or the other (it is planned without "
        "domains)"]


def test_a_tree_in_both_forms() -> None:
    assert fleet.render(topology="tree").files["topology.conf"].splitlines()[-1] == (
        "SwitchName=spine Switches=leaf_nvl1,leaf_nvl2,leaf_l40s,leaf_epyc")
    (tree,) = yaml.safe_load(fleet.render(version="25.05", topology="tree").files["topology.yaml"])
    assert tree["tree"]["switches"][0] == {"switch": "spine", "children": "leaf_nvl1,leaf_nvl2,leaf_l40s,leaf_epyc"}
    assert tree["tree"]["switches"][1] == {"switch": "leaf_nvl1", "nodes": "gb1-[01-18]"}
    one = fleet.render(fleet.prod(domains=0, epyc=0), topology="tree").files["topology.conf"]
    assert one.splitlines()[1:] == ["SwitchName=leaf_l40s Nodes=l40s-[01-16]"]


def test_a_tree_needs_a_leaf_for_each() -> None:
    inventory = fleet.prod()
    leaves = {name: leaf for name, leaf in inventory.leaves.items() if name not in ("gb1-02", "gb1-03")}
    lost = "error: gb1-[02-03]: got no leaf group, wanted a group of its leaf switch (slurm_leaf_groups; a node " \
           "without a switch is never picked)"
    assert lost in findings(dataclasses.replace(inventory, leaves=leaves), topology="tree")
    # By itself an old version takes a tree only where all have one.
    assert "topology.conf" not in fleet.render(dataclasses.replace(inventory, leaves=leaves), version="22.05").files


@pytest.mark.parametrize(("given", "text"), [
    ({"version": "23.11.4", "topology": "block"},
     "error: slurm_topology: got block with Slurm 23.11, wanted 24.05 or later"),
    ({"version": "22.05.8"}, "warning: slurm_version: got 22.05, which knows no NVLink domains and no IMEX"),
])
def test_versions_without_blocks(given: dict[str, t.Any], text: str) -> None:
    assert any(found.startswith(text) for found in findings(**given))


def test_without_domains() -> None:
    inventory = fleet.prod(domains=0)
    assert "error: slurm_topology: got block, and no host with nvlink_domain, wanted NVLink domains (or slurm_" \
           "topology: auto)" in findings(inventory, topology="block")
    rendered = fleet.render(inventory)
    assert rendered.plan.kind == "flat" and rendered.result()["absent"] == ["topology.conf", "topology.yaml"]


@pytest.mark.parametrize("version", ["24.11", "25.05"])
def test_flat_when_it_is_asked_for(version: str) -> None:
    rendered = fleet.render(version=version, topology="flat")
    assert not {"topology.conf", "topology.yaml"} & set(rendered.files)
    assert "Topology=" not in rendered.files["slurm.conf"]
    assert rendered.findings == []
