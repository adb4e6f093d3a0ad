# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._gate.hardware import Hardware
from plugins.module_utils._gate.model import Node
from plugins.module_utils._gate.plan import Planner
from plugins.module_utils._gate.pools import Member, pools_of

CLASSES = {
    "gb200": Hardware("gb200", "GB200", 4, "nvlink", 4, 400, domain_nodes=18),
    "l40s": Hardware("l40s", "L40S", 4, "pcie", 2, 200),
    "epyc9754": Hardware("epyc9754", nics=1, nic_gbit=100),
    "alone": Hardware("alone", "L40S", 4, "pcie"),
}


def members(node_class: str, count: int, **more: str) -> list[Member]:
    return [Member(f"{node_class}-{more.get('domain', '')}{i}", node_class, **more) for i in range(count)]


def test_classes_and_fabrics_are_never_mixed() -> None:
    other = Member("x", "l40s", "leaf1", fabric="b")
    pools = pools_of([*members("l40s", 3, fabric="a"), *members("epyc9754", 2), other], CLASSES)
    assert [(pool.name, len(pool.nodes)) for pool in pools] == [
        ("epyc9754/perftest", 2), ("l40s/a/network", 3), ("l40s/b/network", 1)]
    perftest, network, single = pools
    assert (perftest.rules.kinds, perftest.rules.node_stage, perftest.mnnvl) == ((), False, False)
    assert network.rules.rails == 2
    assert single.nodes == (Node("x", "leaf1"),)


def test_nvl72_is_judged_inside_across_and_with_mnnvl_off() -> None:
    fleet = [*members("gb200", 2, domain="A", leaf="l1"), *members("gb200", 3, domain="B", leaf="l2")]
    pools = pools_of(fleet, CLASSES)
    assert [(pool.name, len(pool.nodes), pool.mnnvl) for pool in pools] == [
        ("gb200/nvlink A", 2, True), ("gb200/nvlink B", 3, True), ("gb200/across nvlink", 5, True),
        ("gb200/network", 5, False)]
    assert all("rails" not in pool.rules.kinds and not pool.rules.node_stage for pool in pools[:3])
    assert {node.leaf for node in pools[2].nodes} == {"A", "B"}
    assert {node.leaf for node in pools[3].nodes} == {"l1", "l2"}
    assert pools[3].rules.rails == 4


def test_one_domain_has_no_run_across() -> None:
    assert [pool.name for pool in pools_of(members("gb200", 2, domain="A"), CLASSES)] == [
        "gb200/nvlink A", "gb200/network"]
    assert [pool.name for pool in pools_of(members("gb200", 1), CLASSES)] == ["gb200/network"]


def test_nodes_without_a_network_are_alone() -> None:
    assert [pool.name for pool in pools_of(members("alone", 2), CLASSES)] == ["alone/alone-0", "alone/alone-1"]


def test_unknown_class_is_named() -> None:
    with pytest.raises(KeyError, match="b300"):
        pools_of(members("b300", 1), CLASSES)


def test_every_pool_can_be_searched() -> None:
    for pool in pools_of([*members("gb200", 4, domain="A"), *members("epyc9754", 2)], CLASSES):
        assert Planner(pool.nodes, pool.rules, 1, pool.name).next_runs()
