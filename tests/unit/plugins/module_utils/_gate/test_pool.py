# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import pool

PCIS = ["0000:03:00.0", "0002:03:00.0"]


def device(number: int, host: int, **port: t.Any) -> dict[str, t.Any]:
    gid = {
        "index": 3,
        "type": "RoCE v2",
        "family": "ipv4",
        "address": f"198.51.{100 + number}.{host}",
        "ndev": f"rail{number}",
    }
    old = {**gid, "index": 2, "type": "IB/RoCE v1"}
    values = {"port": 1, "netdev": f"rail{number}", "state": "ACTIVE", "mtu_bytes": 4200, "gids": [old, gid], **port}
    return {"pci": PCIS[number], "rdma_device": f"mlx5_{number}", "ports": [values]}


def member(host: int, **changes: t.Any) -> dict[str, t.Any]:
    rails = pool.rails_of({"devices": [device(0, host), device(1, host)]}, PCIS)
    return {"pool": "l40s", "address": f"192.0.2.{host}", "port": 22, **rails, **changes}


def test_rails_in_rail_order() -> None:
    found = pool.rails_of({"devices": [device(0, 1), device(1, 1)]}, list(reversed(PCIS)))
    assert found["problems"] == []
    assert found["rails"][0] == {
        "rail": 0,
        "pci": PCIS[1],
        "hca": "mlx5_1:1",
        "netdev": "rail1",
        "address": "198.51.101.1",
        "mtu_bytes": 4200,
    }
    assert pool.hcas_of(found["rails"]) == "=mlx5_1:1,mlx5_0:1"


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ({"state": "DOWN"}, "is DOWN, not ACTIVE"),
        ({"gids": []}, "no RoCE v2 GID"),
        ({"netdev": None}, "no network interface"),
        ({"mtu_bytes": None}, "no known MTU"),
        (
            {"gids": [{"type": "RoCE v2", "family": "ipv4", "address": "198.51.100.9", "ndev": "other"}]},
            "no RoCE v2 GID",
        ),
    ],
)
def test_a_rail_that_cannot_be_used_says_why(port: dict[str, t.Any], words: str) -> None:
    found = pool.rails_of({"devices": [device(0, 1, **port), device(1, 1)]}, PCIS)
    assert len(found["rails"]) == 1
    assert found["problems"][0].startswith("rail 0 (0000:03:00.0)") and words in found["problems"][0]


def test_missing_devices_and_no_rails() -> None:
    assert "no mlx5 device" in pool.rails_of({"devices": []}, PCIS)["problems"][1]
    assert "nccl_gate_rails" in pool.rails_of({"devices": []}, [])["problems"][0]
    assert "no RDMA device" in pool.rails_of({"devices": [{"pci": PCIS[0], "ports": []}]}, PCIS[:1])["problems"][0]


@pytest.mark.parametrize("facts", [None, {}, {"devices": None}, {"devices": [1]}])
def test_what_is_no_result_is_refused(facts: t.Any) -> None:
    with pytest.raises(pool.ShapeError):
        pool.rails_of(facts, PCIS)


def test_ring_neighbours_and_head() -> None:
    names = ["a", "b", "c", "d", "e"]
    assert pool.peers_of(names, "a") == ["b", "c", "d", "e"]
    assert pool.peers_of(names, "c") == ["b", "d", "a"]
    assert pool.peers_of(names, "e") == ["d", "a"]
    assert pool.peers_of(["a", "b"], "b") == ["a"]
    assert pool.peers_of(["a"], "a") == [] and pool.peers_of(names, "x") == []
    # Each path is asked from both ends, also where not all ask all.
    pairs = {(one, other) for one in names for other in pool.peers_of(names, one)}
    assert pairs == {(other, one) for one, other in pairs}


def test_targets_are_rail_to_rail_with_the_larger_mtu() -> None:
    small = member(2)
    small["rails"][1]["mtu_bytes"] = 1500
    targets = pool.path_targets({"a": member(1), "b": small}, "a")
    assert targets[1] == {
        "rail": 1,
        "interface": "rail1",
        "source": "198.51.101.1",
        "peer": "b",
        "peer_interface": "rail1",
        "address": "198.51.101.2",
        "size_bytes": 4200,
    }
    assert [target["size_bytes"] for target in pool.path_targets({"b": small, "a": member(1)}, "b")] == [4200, 4200]
    assert pool.path_targets({"a": member(1), "b": small}, "a", 9000)[0]["size_bytes"] == 9000
    assert pool.path_targets({"a": member(1), "b": {}}, "a") == []


def test_problems_name_hosts_and_different_rail_names() -> None:
    other = member(2)
    other["rails"][1]["hca"] = "mlx5_7:1"
    names = ["a", "b"]
    assert pool.problems(names, {"a": member(1), "b": member(2)}) == []
    assert pool.problems(names, {"a": member(1), "b": member(2, problems=["rail 1 is gone"])}) == ["b: rail 1 is gone"]
    (text,) = pool.problems(names, {"a": member(1), "b": other})
    assert text.startswith("b: the rails are =mlx5_0:1,mlx5_7:1")
    # A host of which nothing is known is in the way, too.
    assert pool.problems(names, {"a": member(1), "b": {}})


def test_hosts_and_readiness() -> None:
    names, members = ["a", "b"], {"a": member(1), "b": member(2)}
    access = {"a": {"host_keys": ["k1"], "hostname": "node-a"}, "b": {"host_keys": ["k2"], "hostname": "node-b"}}
    paths = {"a": {"too_small": 0}, "b": {"too_small": 0}}
    assert pool.test_hosts(names, members, access)[1] == {
        "name": "b",
        "hostname": "node-b",
        "address": "192.0.2.2",
        "port": 22,
        "host_keys": ["k2"],
    }
    assert pool.ready(names, access, paths)
    assert not pool.ready(names, {**access, "b": {"failed": True}}, paths)
    assert not pool.ready(names, access, {**paths, "b": {"too_small": 1}})
    assert not pool.ready(names, access, {"a": {"too_small": 0}})
