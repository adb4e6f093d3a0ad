# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import posixpath

import pytest

from lab.hardware import layout, spec

CLASSES = {"gb200": 4, "l40s": 2, "epyc9754": 1}


@pytest.mark.parametrize("name", CLASSES)
def test_shape_becomes_a_node_and_survives_json(name: str) -> None:
    node = spec.node_spec(name, "h1", 7)
    assert len(node.rails) == CLASSES[name]
    assert spec.NodeSpec.from_json(node.to_json()) == node
    for number, rail in enumerate(node.rails):
        assert (rail.rail, rail.rdma, rail.uverbs) == (number, f"mlx5_{number}", f"uverbs{number}")
        assert len(rail.netdev) <= 15
        assert rail.netdev == spec.udev_name(rail.pci)
        assert (rail.vendor, rail.device, rail.hca_type) == ("0x15b3", "0x1021", "MT4129")
        assert rail.mac.startswith("b8:3f:d2:")


def test_rates_and_numa_nodes() -> None:
    nodes = {name: spec.node_spec(name, "h", 0).rails for name in CLASSES}
    assert {name: [rail.rate_gbps for rail in rails] for name, rails in nodes.items()} == {
        "gb200": [400] * 4, "l40s": [200] * 2, "epyc9754": [100]}
    assert [rail.numa_node for rail in nodes["gb200"]] == [0, 0, 1, 1]
    assert [rail.pci for rail in nodes["l40s"]] == ["0000:41:00.0", "0000:c1:00.0"]


def test_addresses_are_stable_and_differ() -> None:
    assert spec.node_spec("gb200", "a", 3) == spec.node_spec("gb200", "a", 3)
    macs = [rail.mac for index in range(40) for rail in spec.node_spec("gb200", "h", index).rails]
    assert len(set(macs)) == len(macs)
    assert spec.mac_address("b8:3f:d2", 0xABCDE, 15) == "b8:3f:d2:ab:cd:ef"
    assert spec.node_guid("b8:3f:d2:ab:cd:ef") == "b83f:d203:00ab:cdef"
    for index, rail in ((1 << 20, 0), (-1, 0), (0, 16)):
        with pytest.raises(spec.SpecError):
            spec.mac_address("b8:3f:d2", index, rail)


@pytest.mark.parametrize(("pci", "name"), [
    ("0000:03:00.0", "enp3s0f0np0"), ("0002:03:00.0", "enP2p3s0f0np0"), ("0010:03:00.0", "enP16p3s0f0np0"),
    ("0000:c1:00.1", "enp193s0f1np0"),
])
def test_udev_name(pci: str, name: str) -> None:
    assert spec.udev_name(pci) == name


def test_errors_name_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(spec.SpecError, match="epyc9754, gb200, l40s"):
        spec.load_shape("h100")
    with pytest.raises(spec.SpecError, match="not a PCI address"):
        spec.udev_name("03:00.0")
    with pytest.raises(spec.SpecError, match="not a node specification"):
        spec.NodeSpec.from_json('{"rails": [{}]}')
    for change, text in (({"netdev": "eth0"}, "should be enp3s0f0np0"), ({"colour": "red"}, "colour")):
        shape = spec.load_shape("gb200")
        shape["rails"][0] |= change
        with monkeypatch.context() as patch:
            patch.setattr(spec, "load_shape", lambda name, shape=shape: shape)
            with pytest.raises(spec.SpecError, match=text):
                spec.node_spec("gb200", "h", 0)


@pytest.mark.parametrize("name", CLASSES)
def test_directories_suffice_for_the_binds(name: str) -> None:
    node = spec.node_spec(name, "h", 0)
    bound = [target for _source, target in layout.binds(node)]
    made = layout.directories(node)
    assert set(bound) <= set(made)
    for position, path in enumerate(made):
        assert posixpath.dirname(path) in ("", *made[:position])


def test_only_boards_of_5_5_are_bmc_powered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name: spec.node_spec(name, "h", 0).bmc_powered for name in CLASSES} == {
        "gb200": True, "l40s": False, "epyc9754": False}
    shape = spec.load_shape("l40s") | {"bmc_powered": "no"}
    monkeypatch.setattr(spec, "load_shape", lambda name: shape)
    with pytest.raises(spec.SpecError, match="bmc_powered: got 'no', wanted true or false"):
        spec.node_spec("l40s", "h", 0)


def test_gpus_of_the_classes() -> None:
    found = {name: spec.node_spec(name, "h", 0).gpus for name in CLASSES}
    assert {name: [gpu.device for gpu in gpus] for name, gpus in found.items()} == {
        "gb200": ["0x2941"] * 4, "l40s": ["0x26b9"] * 4, "epyc9754": []}
    # Domains other than 0: what reads them must not expect 0000.
    assert [gpu.pci for gpu in found["gb200"]] == ["0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0"]
    for gpus in found.values():
        for number, gpu in enumerate(gpus):
            assert (gpu.gpu, gpu.vendor, gpu.pci_class) == (number, "0x10de", "0x030200")


def test_no_two_functions_of_a_node_share_a_place() -> None:
    for name in CLASSES:
        functions = spec.node_spec(name, "h", 0).functions
        for what in ("pci", "bridge", "irq"):
            values = [getattr(function, what) for function in functions]
            assert len(set(values)) == len(values), f"{name}: {what}"


@pytest.mark.parametrize(("change", "text"), [({"colour": "red"}, "colour"), ({"pci": "01:00.0"}, "not a PCI address")])
def test_a_gpu_that_cannot_be(change: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = spec.load_shape("l40s")
    shape["gpus"][1] |= change
    monkeypatch.setattr(spec, "load_shape", lambda name: shape)
    with pytest.raises(spec.SpecError, match=f"GPU 1.*{text}"):
        spec.node_spec("l40s", "h", 0)
