# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter.slurm_nccl_profile import slurm_nccl_profile
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.nccl_profile import covering, interface_of

PCIS = ["0000:41:00.0", "0000:c1:00.0"]
FACTS = {"interfaces": ["lo", "eth0", "br-mgmt"], "eth0": {"device": "eth0", "ipv4": {"address": "192.0.2.1"}},
         "br_mgmt": {"device": "br-mgmt", "ipv4": {"address": "192.0.2.9"},
                     "ipv4_secondaries": [{"address": "192.0.2.10"}]},
         "default_ipv4": {"interface": "eth0"}}


def device(number: int, **changes: t.Any) -> dict[str, t.Any]:
    gid = {"family": "ipv4", "type": "RoCE v2", "ndev": f"rail{number}", "address": f"198.51.100.{number * 64 + 2}"}
    port = {"port": 1, "netdev": f"rail{number}", "state": "ACTIVE", "mtu_bytes": 4200, "gids": [gid], **changes}
    return {"pci": PCIS[number], "rdma_device": f"mlx5_{number}", "ports": [port]}


def test_the_lines_and_their_reasons() -> None:
    info = {"devices": [device(1), device(0)]}
    found = slurm_nccl_profile(info, PCIS, FACTS, "192.0.2.10", 26, {"NCCL_DEBUG": "WARN"})
    assert found["problems"] == []
    assert found["environment"] == {
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_IB_ADDR_FAMILY": "AF_INET", "NCCL_IB_ROCE_VERSION_NUM": "2",
        "NCCL_IB_ADDR_RANGE": "198.51.100.0/25", "NCCL_SOCKET_IFNAME": "=br-mgmt", "NCCL_IB_TC": "104",
        "NCCL_DEBUG": "WARN"}
    lines = found["text"].splitlines()
    assert "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1" in lines
    assert all(lines[at - 1].startswith("# ") for at, line in enumerate(lines) if line.startswith("NCCL_"))


def test_what_the_site_sets_wins() -> None:
    found = slurm_nccl_profile({"devices": [device(0)]}, PCIS[:1], FACTS, environment={"NCCL_IB_HCA": "=mlx5_9"})
    assert found["environment"]["NCCL_IB_HCA"] == "=mlx5_9" and found["text"].count("NCCL_IB_HCA") == 1
    assert "NCCL_IB_TC" not in found["environment"]


def test_a_rail_that_cannot_be_used_is_named() -> None:
    found = slurm_nccl_profile({"devices": [device(0, state="DOWN"), device(1)]}, PCIS, FACTS)
    assert found["environment"]["NCCL_IB_HCA"] == "=mlx5_1:1"
    assert len(found["problems"]) == 1 and "DOWN" in found["problems"][0]


def test_a_node_without_rails() -> None:
    assert slurm_nccl_profile({}, [], FACTS, "192.0.2.1")["environment"] == {"NCCL_SOCKET_IFNAME": "=eth0"}
    assert slurm_nccl_profile({}, [], {})["environment"] == {}


@pytest.mark.parametrize(("addresses", "network"), [
    ([], ""), (["10.21.0.1"], "10.21.0.1/32"), (["10.21.0.2", "10.21.3.2"], "10.21.0.0/22"),
    (["10.0.0.1", "192.0.2.1"], ""),
])
def test_the_range(addresses: list[str], network: str) -> None:
    assert covering(addresses) == network


def test_the_interface() -> None:
    assert interface_of(FACTS, "192.0.2.1") == "eth0"
    assert interface_of(FACTS, "a-name") == "eth0"
    assert interface_of({}, "192.0.2.1") == ""


@pytest.mark.parametrize("arguments", [
    ({"devices": []}, PCIS, []), ({}, PCIS, FACTS), ({}, [], FACTS, "", None, []), ({}, [], FACTS, "", "x"),
    ({"devices": [device(0)]}, PCIS[:1], FACTS, "", 64), ({}, [], FACTS, "", None, {"a b": 1}),
    ({}, [], FACTS, "", None, {"A": "1\n2"}),
])
def test_bad_input(arguments: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="slurm_nccl_profile: "):
        slurm_nccl_profile(*arguments)
