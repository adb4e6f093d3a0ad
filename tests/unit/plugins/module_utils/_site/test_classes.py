# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import classes

GOOD: dict[str, t.Any] = {
    "node_class_name": "l40s", "node_class_architecture": "x86_64", "node_class_gpu_count": 4,
    "node_class_gpu_pci_ids": ["10de:26b9"], "node_class_nvlink_domain_trays": 0,
    "node_class_nic_pci_ids": ["15b3:1021"],
    "node_class_rail_count": 2, "node_class_rail_speed_gbps": 200, "node_class_rail_link_layer": "Ethernet",
    "node_class_rail_pcie_speed_gts": 16.0, "node_class_rail_pcie_width": 16, "node_class_cpu_cores": 0,
    "mlx5_port_rails": [{"rail": 0, "pci": "0000:41:00.0"}, {"rail": 1, "pci": "0000:c1:00.0"}],
}


def test_sound_variables_and_none_at_all() -> None:
    assert set(classes.VARIABLES) == {name for name in GOOD if name.startswith("node_class_")}
    assert classes.class_problems(GOOD, "l40s") == []
    assert classes.class_problems({}, "l40s") == []


@pytest.mark.parametrize(("name", "value", "wanted"), [
    ("node_class_name", "h100", "one of gb200, l40s, epyc9754"),
    ("node_class_architecture", "amd64", "aarch64 or x86_64"),
    ("node_class_gpu_count", "4", "a whole number"),
    ("node_class_gpu_count", True, "a whole number"),
    ("node_class_gpu_count", -1, "a whole number"),
    ("node_class_gpu_pci_ids", ["10DE:26B9"], "in lower case"),
    ("node_class_gpu_pci_ids", "10de:26b9", "a list of PCI ids"),
    ("node_class_nic_pci_ids", [4129], "a list of PCI ids"),
    ("node_class_rail_speed_gbps", "200G", "a number"),
    ("node_class_rail_link_layer", "RoCE", "Ethernet or InfiniBand"),
    ("node_class_rail_pcie_width", 12, "1, 2, 4, 8, 16 or 32"),
    ("node_class_gpus", 4, "wanted one of node_class_name"),
])
def test_each_variable_is_checked(name: str, value: t.Any, wanted: str) -> None:
    (text,) = classes.class_problems({**GOOD, name: value}, "l40s")
    assert text.startswith(f"{name}: got ") and wanted in text


def test_the_class_is_the_hosts_group_and_has_its_rails() -> None:
    assert classes.class_problems(GOOD, "gb200") == ["node_class_name: got l40s, wanted gb200, the host's group"]
    (text,) = classes.class_problems({**GOOD, "node_class_rail_count": 4}, "l40s")
    assert text == "node_class_rail_count: got 4, wanted 2, as mlx5_port_rails has; or other rails"
    assert classes.class_problems({**GOOD, "node_class_rail_count": 0}, "l40s") == []


def test_a_domain_with_too_many_trays() -> None:
    hosts = {f"g{number}": {"nvlink_domain": "nvl1", "node_class_nvlink_domain_trays": 18} for number in range(1, 20)}
    assert classes.domain_problems({**hosts, "login": {}}) == [
        "nvlink_domain nvl1: got 19 hosts (g1 ... g19), wanted at most 18 (node_class_nvlink_domain_trays)"]
    del hosts["g19"]
    assert classes.domain_problems(hosts) == []
    assert classes.domain_problems({"a": {"nvlink_domain": "x"}}) == []


def test_deviations() -> None:
    data: dict[str, dict[str, t.Any]] = {
        "gb200": {"node_class_architecture": "aarch64", "mlx5_port_mtu_bytes": 4200, "derived": "{{ other }}"},
        "l40s": {"nccl_gate_environment": {}}}
    named = {"node_class_name": "of the class"}
    hosts: dict[str, dict[str, t.Any]] = {
        "g1": {**named, "node_class_architecture": "x86_64", "mlx5_port_mtu_bytes": 4200, "derived": [1]},
        "g2": {**named, "node_class_architecture": "x86_64", "mlx5_port_mtu_bytes": 9000, "derived": []},
        "g3": {**named, "node_class_architecture": "x86_64"},
        "l1": {**named, "nccl_gate_environment": {"NCCL_CROSS_NIC": "0"}},
    }
    members = {"gb200": ["g1", "g2", "g3"], "l40s": ["l1"]}
    assert classes.deviations(hosts, members, data) == [
        'gb200: node_class_architecture: class "aarch64", here "x86_64": all 3 hosts',
        "gb200: mlx5_port_mtu_bytes: class 4200, here 9000: g2",
        "gb200: mlx5_port_mtu_bytes: class 4200, here not set: g3",
        'l40s: nccl_gate_environment: class {}, here {"NCCL_CROSS_NIC": "0"}: l1',
    ]
    assert classes.deviations({"g1": {**named, "a": 1}}, {"gb200": ["g1"]}, {"gb200": {"a": 1}}) == []


def test_hosts_without_their_class() -> None:
    hosts = {"g1": {"a": 1}, "g2": {"a": 2}}
    assert classes.deviations(hosts, {"gb200": ["g1", "g2"]}, {"gb200": {"a": 1, "b": 3}}) == [
        "gb200: the class is not in use (inventories/classes/gb200.yml as group_vars/gb200/00-class.yml): all 2 hosts",
        "gb200: a: class 1, here 2: g2"]
