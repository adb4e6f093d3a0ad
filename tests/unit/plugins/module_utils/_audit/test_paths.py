# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that are measured: rings inside a leaf, one path from leaf to leaf, as many as rails."""
from __future__ import annotations

from plugins.module_utils._audit import expect
from plugins.module_utils._audit.paths import Target, targets
from tests.unit.plugins.module_utils._audit.cases import read
from tests.unit.plugins.module_utils._audit.fleet import GB200, L40S, Fleet


def plan(fleet: Fleet, leaves: int = 1, routed: bool = True) -> dict[str, list[Target]]:
    document = fleet.document()
    for number, host in enumerate(document["hosts"].values()):
        for place in host["rails"].values():
            place[1] = f"{place[1]} leaf {number % leaves}"
            place[2] = ["priority 1001 from 10.0.0.1 table 101"] if routed else []
    wants = expect.load(document)
    return targets(wants, read(fleet, wants))


def pairs(found: dict[str, list[Target]], rail: int = 0) -> set[tuple[str, str]]:
    return {(host[-2:], target["peer"][-2:]) for host, entries in found.items() for target in entries
            if target["rail"] == rail}


def test_a_leaf_is_a_ring() -> None:
    found = plan(Fleet((GB200, 4)))
    assert pairs(found) == {("01", "02"), ("02", "03"), ("03", "04"), ("04", "01")}
    assert sum(map(len, found.values())) == 16
    assert found["gb200-0001"][1] == {
        "rail": 1, "interface": "rail1", "source": "10.16.0.1", "peer": "gb200-0002", "peer_interface": "rail1",
        "address": "10.16.0.2", "size_bytes": 4200}


def test_leaves_are_a_ring_where_there_is_a_gateway() -> None:
    inside = {("01", "03"), ("02", "04")}
    assert pairs(plan(Fleet((GB200, 4)), 2)) == inside | {("01", "02")}
    assert pairs(plan(Fleet((GB200, 4)), 2, routed=False)) == inside
    assert pairs(plan(Fleet((GB200, 3)), 3)) == {("01", "02"), ("02", "03"), ("03", "01")}


def test_pools_are_not_crossed_and_one_host_has_nobody() -> None:
    found = plan(Fleet((GB200, 2), (L40S, 1)))
    assert set(found) == {"gb200-0001"}
    assert {target["peer"] for target in found["gb200-0001"]} == {"gb200-0002"}


def test_what_cannot_be_asked_is_left_out() -> None:
    fleet = Fleet((GB200, 3))
    fleet.records["gb200-0001"]["mlx5_info"]["devices"][0]["ports"][0]["netdev"] = None
    fleet.records["gb200-0002"]["mlx5_info"]["devices"][0]["ports"][0]["link_layer"] = "InfiniBand"
    del fleet.records["gb200-0003"]["mlx5_info"]
    found = plan(fleet)
    assert pairs(found, 0) == set() and pairs(found, 1) == {("01", "02")}


def test_the_larger_mtu_counts() -> None:
    fleet = Fleet((GB200, 2))
    fleet.values["gb200-0002"]["mlx5_port_mtu_bytes"] = 9000
    assert {target["size_bytes"] for target in plan(fleet)["gb200-0001"]} == {9000}
