# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import variables

SPECS = {"nccl_gate": {"nccl_gate_gpus_per_host": {"type": "int", "default": 0},
                       "nccl_gate_mode": {"type": "str", "choices": ["apply", "verify", "off"]},
                       "nccl_gate_environment": {"type": "dict"},
                       "nccl_gate_needed": {"type": "str", "required": True}}}


def host(index: int = 1, **more: t.Any) -> dict[str, t.Any]:
    rails = [{"rail": 0, "pci": "0000:81:00.0"}]
    return {"mlx5_port_rails": rails, "rail_network_rails": rails, "rail_network_subnets": ["192.0.2.0/24"],
            "rail_network_node_index": index, **more}


def problems(hosts: dict[str, dict[str, t.Any]], **members: list[str]) -> list[str]:
    return variables.problems(variables.Inventory(hosts, members or {"l40s": list(hosts)}, SPECS, "/inv"))


def test_a_sound_inventory() -> None:
    assert problems({"h1": host(1), "h2": host(2, rail_network_mtu_bytes=4200, mlx5_port_mtu_bytes=4200)}) == []


def test_two_classes() -> None:
    (text,) = problems({"h1": host()}, gb200=["h1"], l40s=["h1"])
    assert text == "h1: classes: got gb200 and l40s, wanted one, edit /inv/hosts.yml"


def test_the_same_problem_of_many_hosts_is_one_line() -> None:
    hosts = {f"h{number}": host(number, mlx5_port_mtu_bytes=1500) for number in range(1, 6)}
    (text,) = problems(hosts)
    assert text.startswith("h1, h2 ... h5 (5 hosts): variables: mlx5_port_mtu_bytes: got 1500, which gives RDMA MTU")
    assert text.endswith("; edit /inv/group_vars/l40s/ or /inv/host_vars/HOST.yml")
    (text,) = problems({"h1": hosts["h1"], "h2": host(2)})
    assert text.startswith("h1: variables: ") and text.endswith("/inv/host_vars/h1.yml")


def test_two_mtus_for_one_port() -> None:
    (text,) = problems({"h1": host(mlx5_port_mtu_bytes=4200, rail_network_mtu_bytes=9000)})
    assert "rail_network_mtu_bytes: got 9000, wanted 4200, as mlx5_port_mtu_bytes says; give one of them" in text


@pytest.mark.parametrize(("name", "value", "text"), [
    ("nccl_gate_gpus_per_host", "four", "nccl_gate_gpus_per_host"),
    ("nccl_gate_gpus_per_host", "CHANGEME", "nccl_gate_gpus_per_host"),
    ("nccl_gate_mode", "on", "value of nccl_gate_mode must be one of: apply, verify, off, got: on"),
    ("nccl_gate_environment", [1], "nccl_gate_environment"),
])
def test_types_and_choices_of_a_role(name: str, value: t.Any, text: str) -> None:
    (found,) = problems({"h1": host(**{name: value})})
    assert text in found
    assert problems({"h1": host(nccl_gate_mode=False, nccl_gate_gpus_per_host="4", nccl_gate_environment=None)}) == []


def test_the_addresses_of_the_fleet() -> None:
    (text,) = problems({"h1": host(1), "h2": host(1)})
    assert text.startswith("rail plan: address 192.0.2.1: got rail 0 of h1 and rail 0 of h2, wanted one port")
    assert problems({"h1": host(1), "h2": host(1, rail_network_mode=False)}) == []
    assert problems({"h1": host(1), "h2": host(1, rail_network_mode="off")}) == []
    # Also of a host in no class.
    assert len(problems({"h1": host(1), "storage": host(1)}, l40s=["h1"])) == 1


def test_only_known_names_are_looked_at() -> None:
    names = variables.names(SPECS)
    assert {"nccl_gate_mode", "node_class_name", "rail_network_rails", "mlx5_port_rails"} <= set(names)
    assert len(names) == len(set(names))
    assert "vault_become_password" not in names
