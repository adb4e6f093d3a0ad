# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a port's QoS: mlx5-roce 1.5 to 1.9, simulation "Kernel ABI facts"."""
from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lab.hardware import nodes, tree
from lab.hardware.model import Node
from lab.hardware.spec import node_spec
from lab.hardware.state import Event, StateError
from tests.unit.lab.hardware.test_model import RAIL, Source
from tests.unit.lab.hardware.test_tree import walk

SPEC = node_spec("l40s", "h", 1)
FUNCTION = "devices/pci0000:40/0000:40:01.1/0000:41:00.0"
TC, TTL = f"{FUNCTION}/infiniband/mlx5_0/tc/1/traffic_class", f"{FUNCTION}/infiniband/mlx5_0/ttl/1/ttl"
ECN = f"{FUNCTION}/net/{RAIL.name}/ecn"
CC = "debugfs/mlx5/0000:41:00.0/cc_params"


class Machine:
    def __init__(self, tmp_path: Path) -> None:
        real = tmp_path / "devices/virtual/net" / RAIL.name
        real.mkdir(parents=True)
        (real / "mtu").write_text("1500\n")
        (tmp_path / "class/net").mkdir(parents=True)
        (tmp_path / "class/net" / RAIL.name).symlink_to(f"../../devices/virtual/net/{RAIL.name}")
        self.model = Node(SPEC, str(tmp_path), Source([RAIL]))
        self.root = tree.build(self.model, lambda: True)

    def file(self, path: str) -> nodes.File:
        node = walk(self.root, path)
        assert isinstance(node, nodes.File)
        return node

    def read(self, path: str) -> str:
        return self.file(path).read().decode().rstrip("\n")

    def write(self, path: str, text: str) -> None:
        self.file(path).write(f"{text}\n".encode(), 0)

    def code(self, path: str, text: str) -> int | None:
        with pytest.raises(OSError) as caught:
            self.write(path, text)
        return caught.value.errno

    def folder(self, path: str) -> nodes.Dir:
        node = walk(self.root, path)
        assert isinstance(node, nodes.Dir)
        return node


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_configfs_makes_folders_for_rdma_devices_only_and_values_outlive_them(machine: Machine) -> None:
    folder, tos = machine.folder("configfs"), "configfs/mlx5_0/ports/1/default_roce_tos"
    for name, code in (("nope", errno.ENODEV), (RAIL.name, errno.ENODEV)):
        with pytest.raises(OSError) as caught:
            folder.make_dir(name)
        assert caught.value.errno == code
    assert list(folder.names()) == []
    folder.make_dir("mlx5_0")
    assert machine.read(tos) == "0" and machine.read("configfs/mlx5_0/ports/1/default_roce_mode") == "RoCE v2"
    machine.write(tos, "0x6a")
    assert machine.code(tos, "300") == errno.ERANGE and machine.code(tos, "x") == errno.EINVAL
    assert machine.code("configfs/mlx5_0/ports/1/default_roce_mode", "RoCE v1") == errno.EINVAL
    folder.remove_dir("mlx5_0")
    folder.make_dir("mlx5_0")
    assert machine.read(tos) == "106"
    machine.model.state.happen(Event.DRIVER_RELOAD)
    assert machine.read(tos) == "0"
    for node, name in ((machine.folder("debugfs"), "x"), (machine.folder(FUNCTION), "x")):
        with pytest.raises(OSError):
            node.make_dir(name)


def test_cc_params(machine: Machine) -> None:
    assert machine.file(f"{CC}/np_cnp_dscp").mode & 0o777 == 0o600
    machine.write(f"{CC}/np_cnp_prio_mode", "1")
    machine.write(f"{CC}/np_cnp_prio", "5")
    assert (machine.read(f"{CC}/np_cnp_prio"), machine.read(f"{CC}/np_cnp_prio_mode")) == ("5", "0")
    assert machine.code(f"{CC}/np_cnp_dscp", "12345678901") == machine.code(f"{CC}/np_cnp_dscp", "a") == errno.EINVAL
    machine.model.state.current[0]["ROCE_CONTROL"] = "1"
    assert list(machine.folder("debugfs/mlx5").names()) == ["0000:c1:00.0"]


def test_files_of_the_ofed_driver_are_there_with_it_only(machine: Machine) -> None:
    for path in (TC, TTL, f"{ECN}/roce_np/cnp_dscp"):
        with pytest.raises(OSError):
            machine.read(path)
    machine.model.state.set_stack("ofed")
    assert (machine.read(TC), machine.read(TTL), machine.read(f"{ECN}/roce_np/cnp_dscp")) == ("", "64", "48")
    with pytest.raises(StateError, match="got 'x', wanted one of inbox, ofed"):
        machine.model.state.set_stack("x")


def test_traffic_class(machine: Machine) -> None:
    machine.model.state.set_stack("ofed")
    machine.write(TC, "104")
    machine.write(TC, "src_ip=192.0.2.1,dst_ip=192.0.2.2/32,tclass=0x60")
    assert machine.read(TC).splitlines() == ["Global tclass=104", "src_ip=192.0.2.1,dst_ip=192.0.2.2/32,tclass=96"]
    machine.write(TC, "tclass=-1")
    assert machine.read(TC) == "src_ip=192.0.2.1,dst_ip=192.0.2.2/32,tclass=96"
    for bad in ("256", "src_ip=192.0.2.1", "x", "tclass=1,src_ip=192.0.2.1,dst_ip6=2001:db8::1", "1" * 101):
        assert machine.code(TC, bad) == errno.EINVAL


def test_ecn_np_is_one_switch_and_rp_one_for_each_priority(machine: Machine) -> None:
    machine.model.state.set_stack("ofed")
    for side in ("np", "rp"):
        machine.write(f"{ECN}/roce_{side}/enable/3", "0")
    assert [machine.read(f"{ECN}/roce_np/enable/{n}") for n in range(8)] == ["0"] * 8
    assert [machine.read(f"{ECN}/roce_rp/enable/{n}") for n in range(8)] == ["1"] * 3 + ["0"] + ["1"] * 4
    machine.write(f"{ECN}/roce_rp/enable/3", "7")
    assert machine.read(f"{ECN}/roce_rp/enable/3") == "1"
    assert machine.code(f"{ECN}/roce_rp/enable/3", "on") == errno.EINVAL
    # The same value behind both doors.
    machine.write(f"{ECN}/roce_np/cnp_dscp", "10")
    assert machine.read(f"{CC}/np_cnp_dscp") == "10"


def test_dcbnl_is_there_for_ports_with_a_driver(machine: Machine) -> None:
    assert list(machine.folder("dcbnl").names()) == [RAIL.name]
    machine.write(f"dcbnl/{RAIL.name}", '{"set": "app", "entries": [[26, 3]]}')
    assert '"app": [[26, 3]]' in machine.read(f"dcbnl/{RAIL.name}")
    machine.model.state.driver = False
    assert list(machine.folder("dcbnl").names()) == []
