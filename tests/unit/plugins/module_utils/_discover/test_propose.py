# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import propose, read
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.propose import Fleet

from tests.unit.plugins.module_utils._discover.case import Results, classes, epyc, l40s, tray

OTHER = "3f1b2c4d-0000-4000-8000-00000000000b"


def fleet(*results: Results) -> Fleet:
    return propose.fleet([one.host() for one in results], classes())


def test_domains_are_named_in_the_order_of_the_hosts() -> None:
    found = fleet(tray("g1"), tray("g2", 2, OTHER), tray("g3", 3), l40s())
    assert [one.nvlink_domain for one in found.proposals] == ["nvl1", "nvl2", "nvl1", None]
    assert found.domains["nvl2"] == f"{OTHER}.1"


def test_leaves_by_subnets_a_host_with_fewer_rails_included() -> None:
    found = fleet(tray(), epyc("e1", 3), l40s("l1", 4))
    assert [one.leaf for one in found.proposals] == ["leaf1", "leaf2", "leaf2"]
    assert found.leaves["leaf1"] == tuple(f"198.51.{rail}.0/24" for rail in range(4))
    assert found.leaves["leaf2"] == ("203.0.113.0/24", "203.0.114.0/24")
    assert [one.node_index for one in found.proposals] == [1, 3, 4]


def test_leaves_by_lldp_where_there_is_no_address() -> None:
    hosts = [l40s("a"), l40s("b"), l40s("c")]
    for results, pod in zip(hosts, ("p1", "p1", "p2")):
        for number in range(2):
            results.info["netdevs"][number]["addresses"] = []
        results.info["lldp"] = [{"netdev": f"rail{number}", "chassis": f"{pod}-leaf{number}"} for number in range(2)]
    found = fleet(*hosts)
    assert [one.leaf for one in found.proposals] == ["leaf1", "leaf1", "leaf2"]
    assert found.leaves == {"leaf1": (), "leaf2": ()}


def test_nothing_tells_the_leaf_or_the_number() -> None:
    results = l40s()
    results.info["netdevs"][1]["addresses"] = []
    one = fleet(results).proposals[0]
    assert (one.leaf, one.subnets, one.node_index) == (None, (), None)
    results = l40s()
    results.info["netdevs"][1]["addresses"] = ["203.0.114.9/24"]
    assert fleet(results).proposals[0].node_index is None, "another number on each rail"


def test_an_unknown_host_has_no_rails_and_keeps_its_own_findings() -> None:
    results = tray()
    results.info["gpus"] = [{"pci": "0008:01:00.0", "pci_id": "10de:2330", "name": None}]
    results.info["findings"] = [{"object": "default route (IPv4)", "got": "a; b", "wanted": "one", "hint": ""}]
    one = fleet(results).proposals[0]
    assert (one.group, one.rails, one.nvlink_domain) == ("unknown", (), None)
    assert [finding.object for finding in one.findings] == ["GPU 0008:01:00.0", "default route (IPv4)"]


def test_a_host_that_did_not_answer_is_a_finding() -> None:
    found = propose.fleet([read.host("h", {"unreachable": True, "msg": "timed out"}, None)], classes())
    assert [(one.group, one.findings[0].got) for one in found.proposals] == [("unknown", "unreachable: timed out")]


def test_no_hosts() -> None:
    assert propose.fleet([], classes()).proposals == ()
