# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lab.hardware import nodes, pci, tree
from lab.hardware.model import Node
from lab.hardware.spec import node_spec
from lab.hardware.state import Event
from tests.unit.lab.hardware.test_model import RAIL, Source

SPEC = node_spec("l40s", "h", 1)
FUNCTION = "devices/pci0000:40/0000:40:01.1/0000:41:00.0"


@pytest.fixture(name="root")
def fixture_root(tmp_path: Path) -> nodes.Dir:
    real = tmp_path / "devices/virtual/net" / RAIL.name
    (real / "statistics").mkdir(parents=True)
    (real / "mtu").write_text("1500\n")
    (real / "carrier").write_text("1\n")
    (real / "subsystem").symlink_to("../../../../class/net")
    (tmp_path / "class/net").mkdir(parents=True)
    (tmp_path / "class/net" / RAIL.name).symlink_to(f"../../devices/virtual/net/{RAIL.name}")
    (tmp_path / "class/net/bonding_masters").write_text("\n")
    return tree.build(Node(SPEC, str(tmp_path), Source([RAIL])), lambda: True)


def walk(node: nodes.Node, path: str) -> nodes.Node:
    for name in path.split("/"):
        assert isinstance(node, nodes.Dir)
        node = node.child(name)
    return node


def text(root: nodes.Dir, path: str) -> str:
    node = walk(root, path)
    assert isinstance(node, nodes.File)
    return node.read().decode()


def test_class_net(root: nodes.Dir) -> None:
    link = walk(root, f"net/{RAIL.name}")
    assert isinstance(link, nodes.Link) and link.target == f"../../{FUNCTION}/net/{RAIL.name}"
    assert isinstance(walk(root, "net/bonding_masters"), nodes.RealFile)
    device = walk(root, f"{FUNCTION}/net/{RAIL.name}/device")
    assert isinstance(device, nodes.Link) and device.target == "../../../0000:41:00.0"
    subsystem = walk(root, f"{FUNCTION}/net/{RAIL.name}/subsystem")
    assert isinstance(subsystem, nodes.Link) and subsystem.target == "../../../../../../class/net"


def test_pci_attributes(root: nodes.Dir) -> None:
    assert text(root, f"{FUNCTION}/class") == "0x020000\n"
    assert text(root, f"{FUNCTION}/modalias") == "pci:v000015B3d00001021sv000015B3sd00000023bc02sc00i00\n"
    assert "PCI_SLOT_NAME=0000:41:00.0\n" in text(root, f"{FUNCTION}/uevent")
    driver = walk(root, f"{FUNCTION}/driver")
    assert isinstance(driver, nodes.Link) and driver.target == "../../../../bus/pci/drivers/mlx5_core"
    uevent = walk(root, f"{FUNCTION}/uevent")
    assert isinstance(uevent, nodes.File)
    uevent.write(b"add\n", 0)
    with pytest.raises(OSError) as caught:
        uevent.write(b"nonsense\n", 0)
    assert caught.value.errno == errno.EINVAL


def test_configuration_space() -> None:
    data = pci.function_config(SPEC.rails[0])
    assert len(data) == 4096 and data[0x0E] == 0x80 and data[0x34] == 0x60 and data[0x60] == 0x10
    assert int.from_bytes(data[0x72:0x74], "little") == 16 << 4 | 5
    bridge = pci.bridge_config(SPEC.rails[0])
    assert (bridge[0x0E], list(bridge[0x18:0x1B])) == (1, [0x40, 0x41, 0x41])
    config = pci.Config(data, lambda: False)
    assert len(config.read()) == 64


def test_rdma_device(root: nodes.Dir) -> None:
    rdma = f"{FUNCTION}/infiniband/mlx5_0"
    assert text(root, f"{rdma}/node_type") == "1: CA\n"
    assert text(root, f"{rdma}/ports/1/rate") == "200 Gb/sec (4X HDR)\n"
    assert text(root, f"{rdma}/ports/1/gids/9") == "0000:0000:0000:0000:0000:0000:0000:0000\n"
    assert text(root, f"{rdma}/ports/1/gid_attrs/ndevs/0") == f"{RAIL.name}\n"
    for path, code in (("gid_attrs/types/9", errno.EINVAL), ("gids/255", errno.ENOENT), ("gids/01", errno.ENOENT)):
        with pytest.raises(OSError) as caught:
            text(root, f"{rdma}/ports/1/{path}")
        assert caught.value.errno == code


def test_writes(root: nodes.Dir) -> None:
    name = walk(root, f"{FUNCTION}/infiniband/mlx5_0/node_desc")
    assert isinstance(name, nodes.File)
    name.write(b"host mlx5_0\n", 0)
    assert name.read() == b"host mlx5_0\n"
    version = walk(root, f"{FUNCTION}/infiniband/mlx5_0/fw_ver")
    assert isinstance(version, nodes.File)
    with pytest.raises(OSError) as caught:
        version.check_open(os.O_WRONLY)
    assert caught.value.errno == errno.EACCES
    for bad in ("", "-1", "10001", "1.5", "²"):
        with pytest.raises(OSError):
            tree.lifespan(bad)


@pytest.mark.parametrize(("path", "target", "seen"), [
    ("devices/virtual/net/r0/subsystem", "../../../../class/net", "../../../../../../class/net"),
    ("devices/virtual/net/r0/upper_mv0", "../mv0", "../../../../../virtual/net/mv0"),
    ("devices/virtual/net/r0/queues/x", "../../r1/queues", "../../../../../../pciB/b/net/r1/queues"),
    ("devices/virtual/net/mv0/lower_r0", "../r0", "../../../pciA/b/f/net/r0"),
    ("devices/virtual/net/r00/x", "../lo", "../lo"),
])
def test_translate_link(path: str, target: str, seen: str) -> None:
    moved = {"devices/virtual/net/r0": "devices/pciA/b/f/net/r0", "devices/virtual/net/r1": "devices/pciB/b/net/r1"}
    assert nodes.translate_link(path, target, moved) == seen


@pytest.mark.parametrize(("path", "target"), [
    ("infiniband/mlx5_1", "../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0/infiniband/mlx5_1"),
    ("infiniband_verbs/uverbs0", f"../../{FUNCTION}/infiniband_verbs/uverbs0"),
    ("pci/devices/0000:41:00.0", f"../../../{FUNCTION}"),
    ("pci/devices/0000:40:01.1", "../../../devices/pci0000:40/0000:40:01.1"),
    ("pci/drivers/mlx5_core/0000:41:00.0", f"../../../../{FUNCTION}"),
])
def test_link_texts_are_the_kernels(root: nodes.Dir, path: str, target: str) -> None:
    link = walk(root, path)
    assert isinstance(link, nodes.Link) and link.target == target


def listing(node: nodes.Node, at: str = "") -> set[str]:
    if not isinstance(node, nodes.Dir) or isinstance(node, nodes.IndexDir):
        return {at}
    return {at}.union(*(listing(node.child(name), f"{at}/{name}") for name in node.names()))


def test_udev_finds_the_driver_of_a_rail_at_the_device_of_the_kernels_event(tmp_path: Path, root: nodes.Dir) -> None:
    (tmp_path / "devices/virtual/net/lo").mkdir()
    assert set(walk(root, "virtual_net").names()) == {RAIL.name, "lo"}  # type: ignore[attr-defined]
    link = walk(root, f"virtual_net/{RAIL.name}/driver")
    assert isinstance(link, nodes.Link) and link.target == "../../../../bus/pci/drivers/mlx5_core"
    assert text(root, f"virtual_net/{RAIL.name}/mtu") == "1500\n"
    subsystem = walk(root, f"virtual_net/{RAIL.name}/subsystem")
    assert isinstance(subsystem, nodes.Link) and subsystem.target == "../../../../class/net"
    assert "driver" not in walk(root, "virtual_net/lo").names()  # type: ignore[attr-defined]


def test_a_function_off_the_bus_leaves_nothing_behind(tmp_path: Path) -> None:
    for folder in ("class/net", "devices/virtual/net"):
        (tmp_path / folder).mkdir(parents=True)
    model = Node(SPEC, str(tmp_path), Source([]))
    tree_root = tree.build(model, lambda: True)
    before = listing(tree_root)
    marks = ("0000:41:00.0", "mlx5_0", "uverbs0")
    assert all(any(path.endswith(f"/{mark}") for path in before) for mark in marks)
    model.state.lose(0)
    gone = before - listing(tree_root)
    assert gone == {path for path in before if any(f"/{mark}" in path for mark in marks)}
    model.state.find(0)
    assert before - listing(tree_root) == gone, "back before the bus was scanned"
    model.state.happen(Event.DRIVER_RELOAD)
    assert listing(tree_root) == before


def test_without_the_driver_the_function_is_bare(tmp_path: Path) -> None:
    (tmp_path / "class/net").mkdir(parents=True)
    model = Node(SPEC, str(tmp_path), Source([]))
    tree_root = tree.build(model, lambda: True)
    model.state.driver = False
    function = walk(tree_root, FUNCTION)
    assert isinstance(function, nodes.Dir)
    names = set(function.names())
    assert "config" in names and not {"driver", "net", "infiniband", "infiniband_verbs"} & names
    for name in ("infiniband", "dev", "pci/drivers/mlx5_core"):
        directory = walk(tree_root, name)
        assert isinstance(directory, nodes.Dir) and list(directory.names()) == []


def test_gpus_are_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    (tmp_path / "class/net").mkdir(parents=True)
    tray = node_spec("gb200", "h", 1)
    tree_root = tree.build(Node(tray, str(tmp_path), Source([])), lambda: True)
    devices = walk(tree_root, "pci/devices")
    assert isinstance(devices, nodes.Dir)
    names = list(devices.names())
    assert len(names) == 2 * (4 + 4), "each function and its root port"
    for gpu in tray.gpus:
        link = walk(tree_root, f"pci/devices/{gpu.pci}")
        assert isinstance(link, nodes.Link) and link.target == f"../../../{gpu.pci_dir}"
        assert (text(tree_root, f"{gpu.pci_dir}/vendor"), text(tree_root, f"{gpu.pci_dir}/device")) == (
            "0x10de\n", "0x2941\n")
        assert text(tree_root, f"{gpu.pci_dir}/class") == "0x030200\n"
        function = walk(tree_root, gpu.pci_dir)
        assert isinstance(function, nodes.Dir) and not {"driver", "net", "infiniband"} & set(function.names())
    assert [text(tree_root, f"{gpu.pci_dir}/numa_node") for gpu in tray.gpus] == ["0\n", "0\n", "1\n", "1\n"]


def test_configuration_space_of_a_gpu() -> None:
    data = pci.gpu_config(SPEC.gpus[0])
    assert int.from_bytes(data[:2], "little") == 0x10DE and int.from_bytes(data[2:4], "little") == 0x26B9
    assert (data[0x0B], data[0x0A], data[0x0E], data[0x60]) == (3, 2, 0, 0x10)
    starts = {pci.gpu_bar_address(gpu) for gpu in SPEC.gpus} | {pci.bar_address(rail) for rail in SPEC.rails}
    assert len(starts) == len(SPEC.gpus) + len(SPEC.rails), "no two functions share an address"
