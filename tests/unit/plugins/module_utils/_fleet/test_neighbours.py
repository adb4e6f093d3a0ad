# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import neighbours

HOSTS = ["a", "b", "c", "d"]


def device(rail: int | None, address: str | None, mtu: int = 4200, **port: t.Any) -> dict[str, t.Any]:
    gids = [{"family": "ipv6", "type": "RoCE v2", "ndev": f"r{rail}", "address": "fe80::1"},
            {"family": "ipv4", "type": "IB/RoCE v1", "ndev": f"r{rail}", "address": "203.0.113.1"},
            {"family": "ipv4", "type": "RoCE v2", "ndev": "vlan7", "address": "203.0.113.7"}]
    if address:
        gids.append({"family": "ipv4", "type": "RoCE v2", "ndev": f"r{rail}", "address": address})
    return {"rail": rail, "ports": [{"netdev": f"r{rail}", "state": "ACTIVE", "mtu_bytes": mtu, "gids": gids, **port}]}


def fleet(**own: t.Any) -> dict[str, t.Any]:
    """Four hosts with two rails."""
    found = {host: {"data": {"devices": [device(rail, f"198.51.{100 + rail}.{number}") for rail in (0, 1)]}}
             for number, host in enumerate(HOSTS, 1)}
    for host, devices in own.items():
        found[host] = {"data": {"devices": devices}}
    return found


def asked(targets: list[dict[str, t.Any]]) -> list[tuple[int, str, str, int]]:
    return [(target["rail"], target["peer"], target["address"], target["size_bytes"]) for target in targets]


@pytest.mark.parametrize("odd", [
    device(None, "198.51.100.9"), device(0, None), device(0, "169.254.1.1"), device(0, "198.51.100.9", state="DOWN"),
    device(0, "198.51.100.9", netdev=None), device(0, "198.51.100.9", mtu_bytes=None), {"rail": 0, "ports": []},
    {"rail": 0},
])
def test_rails_that_cannot_be_asked(odd: dict[str, t.Any]) -> None:
    assert neighbours.ends({"data": {"devices": [odd]}}) == {}
    assert neighbours.ends(None) == neighbours.ends({}) == neighbours.ends({"data": {}}) == {}


def test_before_only_hosts_outside_of_the_batch_are_asked() -> None:
    found = neighbours.before(fleet(), HOSTS, ["a", "b"])
    assert list(found) == ["a", "b"]
    assert asked(found["a"]) == [(0, "c", "198.51.100.3", 4200), (1, "c", "198.51.101.3", 4200)]
    assert found["a"][0] == {"rail": 0, "interface": "r0", "source": "198.51.100.1", "peer": "c",
                             "peer_interface": "r0", "address": "198.51.100.3", "size_bytes": 4200}
    # Nobody else is there, or nothing is known of the host itself.
    assert neighbours.before(fleet(), HOSTS, HOSTS) == {host: [] for host in HOSTS}
    assert neighbours.before({"b": fleet()["b"]}, HOSTS, ["a"]) == {"a": []}


def test_after_a_host_of_this_run_is_preferred_and_the_last_one_goes_round() -> None:
    assert asked(neighbours.after(fleet(), HOSTS, "d", {"b"}, {(0, "a"): 1500, (1, "a"): 1500})) == [
        (0, "b", "198.51.100.2", 4200), (1, "b", "198.51.101.2", 4200)]
    assert asked(neighbours.after(fleet(), HOSTS, "d", {"a", "b"}, {}))[0][1] == "a"


def test_after_another_host_counts_only_where_it_answered_before() -> None:
    assert asked(neighbours.after(fleet(), HOSTS, "a", set(), {(1, "c"): 4200})) == [(1, "c", "198.51.101.3", 4200)]
    assert neighbours.after(fleet(), HOSTS, "a", set(), {}) == []
    # What did not pass before is not the change's fault.
    assert asked(neighbours.after(fleet(), HOSTS, "a", set(), {(1, "c"): 1500})) == [(1, "c", "198.51.101.3", 1500)]
    assert asked(neighbours.after(fleet(), HOSTS, "a", set(), {(1, "c"): 9000})) == [(1, "c", "198.51.101.3", 4200)]


def test_after_the_size_is_the_smaller_mtu_and_a_rail_that_is_down_has_another_neighbour() -> None:
    records = fleet(b=[device(0, "198.51.100.2", 1500), device(1, "198.51.101.2", state="DOWN")])
    assert asked(neighbours.after(records, HOSTS, "a", {"b", "c"}, {})) == [
        (0, "b", "198.51.100.2", 1500), (1, "c", "198.51.101.3", 4200)]


def test_answers_and_findings() -> None:
    path = {"rail": 0, "interface": "r0", "source": "198.51.100.1", "peer": "b", "address": "198.51.100.2",
            "size_bytes": 4200, "passed": False, "largest_bytes": 1500, "reason": ""}
    paths = [path, {**path, "rail": 1, "passed": True}, {**path, "rail": 2, "largest_bytes": 0, "reason": "No route"}]
    assert neighbours.answered(paths) == {(0, "b"): 1500, (1, "b"): 1500}
    assert neighbours.answered(None) == {}
    assert neighbours.findings("a", paths) == [
        "a rail 0 (r0, 198.51.100.1) to b (198.51.100.2): got 1500 bytes at most, wanted 4200 bytes unfragmented",
        "a rail 2 (r0, 198.51.100.1) to b (198.51.100.2): got no answer, wanted 4200 bytes unfragmented, No route"]
    assert neighbours.findings("a", None) == []
