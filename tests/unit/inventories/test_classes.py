# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The class files: sound, complete, of the hardware that the facts name, and linked where they are used."""
from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.rails import rail_problems
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.classes import CLASSES as GATE
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import addresses
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._site import classes

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "inventories" / "classes"
# As their drivers list them: Linux mlx5_core main.c, NVIDIA/open-gpu-kernel-modules README.
NICS = {"15b3:1021": "ConnectX-7", "15b3:101b": "ConnectX-6", "15b3:101d": "ConnectX-6 Dx"}
GPUS = {"10de:2941": "GB200", "10de:26b9": "L40S"}
# Fastest port of each, in Gb/s.
FASTEST = {"15b3:1021": 400, "15b3:101b": 200, "15b3:101d": 200}


def load(name: str) -> dict[str, t.Any]:
    data: dict[str, t.Any] = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
    return data


def test_the_files_are_the_classes() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(classes.CLASSES)


@pytest.mark.parametrize("name", classes.CLASSES)
def test_a_class_is_sound_and_complete(name: str) -> None:
    data = load(name)
    assert set(classes.VARIABLES) <= set(data)
    assert classes.class_problems(data, name) == []
    mtus = (data["mlx5_port_mtu_bytes"], data["mlx5_port_expected_rdma_mtu_bytes"])
    assert rail_problems(data["mlx5_port_rails"], *mtus) == []
    assert len(data["mlx5_port_rails"]) == data["node_class_rail_count"]
    assert data["rail_network_rails"] == "{{ mlx5_port_rails }}"
    # With subnets of a site the rails are a plan.
    hosts = {f"h{index}": {addresses.VARIABLE: data["mlx5_port_rails"], addresses.INDEX: index,
                           addresses.SUBNETS: [f"10.0.{rail}.0/24" for rail in range(4)]} for index in (1, 2)}
    options, problems = addresses.plan(hosts)
    assert problems == [] and len(options["h2"]) == len(data["mlx5_port_rails"])


@pytest.mark.parametrize("name", classes.CLASSES)
def test_every_role_variable_is_one(name: str) -> None:
    specs = [yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"]
             for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")]
    known = {option for spec in specs for option in spec} | set(classes.VARIABLES)
    assert set(load(name)) <= known


@pytest.mark.parametrize("name", classes.CLASSES)
def test_ids_and_rates_are_of_the_hardware(name: str) -> None:
    data = load(name)
    assert set(data["node_class_nic_pci_ids"]) <= set(NICS)
    assert set(data["node_class_gpu_pci_ids"]) <= set(GPUS)
    assert bool(data["node_class_gpu_pci_ids"]) == bool(data["node_class_gpu_count"])
    assert all(FASTEST[nic] >= data["node_class_rail_speed_gbps"] for nic in data["node_class_nic_pci_ids"])
    # The slot carries the port: 128b/130b coding from 8 GT/s on.
    slot = data["node_class_rail_pcie_speed_gts"] * data["node_class_rail_pcie_width"] * 128 / 130
    assert slot > data["node_class_rail_speed_gbps"]
    # MaxReadReq 4096 from 200 Gb/s on; pause off where there is PFC, which is everywhere by default.
    assert (data.get("mlx5_port_max_read_request_bytes") == 4096) == (data["node_class_rail_speed_gbps"] >= 200)
    assert data["mlx5_port_global_pause"] == "disabled"


@pytest.mark.parametrize("name", classes.CLASSES)
def test_the_command_line_has_the_same_hardware(name: str) -> None:
    data, (hardware, _wanted) = load(name), GATE[name]
    assert (hardware.gpus_per_node, hardware.nics, hardware.nic_gbit) == (
        data["node_class_gpu_count"], data["node_class_rail_count"], data["node_class_rail_speed_gbps"])
    assert max(1, data["node_class_nvlink_domain_trays"]) == hardware.domain_nodes
    assert data["nccl_gate_gpus_per_host"] == hardware.gpus_per_node


@pytest.mark.parametrize("name", classes.CLASSES)
def test_every_value_has_a_reason(name: str) -> None:
    """A comment above the key, or above the first of a run of keys."""
    lines = (FOLDER / f"{name}.yml").read_text(encoding="utf-8").splitlines()
    top = [number for number, line in enumerate(lines) if re.match(r"\w+:", line)]
    bare = [lines[number] for number in top if not lines[number - 1].startswith(("#", "  ")) and number - 1 not in top]
    assert bare == []


@pytest.mark.parametrize("inventory", ["lab", "prod"])
@pytest.mark.parametrize("name", classes.CLASSES)
def test_the_links(inventory: str, name: str) -> None:
    link = ROOT / "inventories" / inventory / "group_vars" / name / "00-class.yml"
    assert link.is_symlink() and not link.readlink().is_absolute()
    assert link.resolve() == FOLDER / f"{name}.yml"


@pytest.mark.parametrize("name", classes.CLASSES)
def test_the_labs_shape_is_the_classs(name: str) -> None:
    shape = yaml.safe_load((ROOT / "lab" / "hardware" / "shapes" / f"{name}.yml").read_text(encoding="utf-8"))
    data = load(name)
    assert [rail["pci"] for rail in shape["rails"]] == [rail["pci"] for rail in data["mlx5_port_rails"]]
    assert f"{shape['nic']['vendor'][2:]}:{shape['nic']['device'][2:]}" in data["node_class_nic_pci_ids"]
    assert shape["nic"]["rate_gbps"] == data["node_class_rail_speed_gbps"]
    assert shape["bmc_powered"] == data["mlx5_nvconfig_bmc_powered"]
    assert shape["nic"]["vpi"] == ("LINK_TYPE_P1" in data["mlx5_nvconfig_parameters"])
