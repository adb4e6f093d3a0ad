# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.sysfs import Sysfs
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.sysfs import (
    choose_netdev,
    read_devices,
    read_netdev,
)

from tests.unit.plugins.fake import FakeNode


def sysfs(node: FakeNode) -> Sysfs:
    return Sysfs(node.root / "sys")


def test_a_device(node: FakeNode) -> None:
    devices, problems = read_devices(sysfs(node))
    assert problems == []
    first, second = devices
    assert (first.pci, first.pci_id, first.numa_node, first.driver) == ("0000:03:00.0", "15b3:1021", 0, "mlx5_core")
    assert (first.firmware_version, first.psid, first.is_vf) == ("28.39.1002", "MT_0000000834", False)
    assert (first.rdma_device, second.rdma_device) == ("mlx5_0", "rocep3s0f0")
    port = first.ports[0]
    assert (port.port, port.state, port.phys_state, port.speed_gbps) == (1, "ACTIVE", "LinkUp", 400.0)
    assert (port.netdev, port.mtu_bytes, port.admin_state, port.oper_state) == ("rail0", 1500, "up", "up")
    assert (port.link_layer, port.mac, port.rdma_mtu_bytes) == ("Ethernet", "02:00:00:00:00:11", None)
    assert [(gid.index, gid.type, gid.ndev, gid.address) for gid in port.gids][2:] == [
        (2, "IB/RoCE v1", "rail0", "198.51.100.1"), (3, "RoCE v2", "rail0", "198.51.100.1")]


def test_empty_and_foreign_slots_are_left_out(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.read_text

    def read(self: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
        # As in a container: another namespace's GID reads, its type is EINVAL; one netdev is elsewhere.
        if str(self).endswith("gid_attrs/types/2"):
            raise OSError(errno.EINVAL, "Invalid argument")
        if str(self).endswith("gid_attrs/ndevs/3"):
            raise OSError(errno.EINVAL, "Invalid argument")
        return original(self, encoding, errors)

    node.put("/sys/class/infiniband/mlx5_0/ports/1/gids/odd", "fe80:0000:0000:0000:0000:00ff:fe00:0099\n")
    monkeypatch.setattr(Path, "read_text", read)
    devices, problems = read_devices(sysfs(node))
    assert [(gid.index, gid.ndev) for gid in devices[0].ports[0].gids] == [(0, "rail0"), (1, "rail0"), (3, None)]
    assert problems == []


def test_an_emulation_that_died_is_a_problem(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: Path, **_options: str) -> str:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    monkeypatch.setattr(Path, "read_text", read)
    devices, problems = read_devices(sysfs(node))
    assert devices == ()
    assert "/sys/bus/pci/devices/0000:03:00.0/vendor: got ENOTCONN" in problems[0].text()


def test_other_vendors_and_functions_without_a_port_are_left_out(node: FakeNode) -> None:
    node.put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x8086\n")
    node.put("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x15b3\n")
    assert [device.pci for device in read_devices(sysfs(node))[0]] == ["0000:03:00.0", "0002:03:00.0"]


def test_a_function_without_rdma(node: FakeNode) -> None:
    base = "/sys/bus/pci/devices/0000:04:00.1"
    node.put(f"{base}/vendor", "0x15b3\n")
    node.put(f"{base}/numa_node", "-1\n")
    node.put(f"{base}/physfn/x", "")
    node.put(f"{base}/net/vf0/x", "")
    node.add_netdev("vf0")
    node.put("/sys/class/net/vf0/flags", "0x1002\n")
    device = read_devices(sysfs(node))[0][1]
    assert (device.rdma_device, device.numa_node, device.is_vf, device.firmware_version) == (None, None, True, None)
    port = device.ports[0]
    assert (port.link_layer, port.state, port.admin_state) == ("Ethernet", None, "down")


def test_a_function_without_a_netdev_and_with_two_rdma_devices(node: FakeNode) -> None:
    base = "/sys/bus/pci/devices/0000:04:00.0"
    node.put(f"{base}/vendor", "0x15b3\n")
    node.put(f"{base}/infiniband/mlx5_10/x", "")
    node.put(f"{base}/infiniband/mlx5_9/x", "")
    node.put("/sys/class/infiniband/mlx5_9/ports/1/state", "1: DOWN\n")
    devices, problems = read_devices(sysfs(node))
    port = devices[1].ports[0]
    assert (devices[1].rdma_device, port.netdev, port.state, port.mtu_bytes) == ("mlx5_9", None, "DOWN", None)
    assert "got RDMA devices mlx5_9, mlx5_10, wanted one" in problems[0].text()


def test_an_rdma_device_without_ports(node: FakeNode) -> None:
    node.put("/sys/bus/pci/devices/0000:04:00.0/vendor", "0x15b3\n")
    node.put("/sys/bus/pci/devices/0000:04:00.0/infiniband/mlx5_9/x", "")
    assert read_devices(sysfs(node))[0][1].ports == ()


def test_several_netdevs_the_kernels_answer_counts_first(node: FakeNode) -> None:
    path = "class/infiniband/mlx5_0/ports/1"
    assert choose_netdev(sysfs(node), ("rail0", "rail0_0"), path, 1) == "rail0"
    # A bond owns the GIDs: the function's own netdev stays the port's.
    node.put(f"/sys/{path}/gid_attrs/ndevs/0", "bond0\n")
    assert choose_netdev(sysfs(node), ("rail0",), path, 1) == "rail0"
    assert choose_netdev(sysfs(node), (), path, 1) is None


def test_several_netdevs_by_port_name_and_number(node: FakeNode) -> None:
    for name, port_name in (("a", "pf0vf0"), ("b", "p0")):
        node.put(f"/sys/class/net/{name}/phys_port_name", f"{port_name}\n")
    assert choose_netdev(sysfs(node), ("a", "b"), None, 1) == "b"
    node.put("/sys/class/net/c/dev_port", "1\n")
    node.put("/sys/class/net/d/dev_port", "0\n")
    assert choose_netdev(sysfs(node), ("c", "d"), None, 1) == "d"
    assert choose_netdev(sysfs(node), ("c", "d"), None, 3) is None


def test_a_netdev_that_went_away(node: FakeNode) -> None:
    netdev = read_netdev(sysfs(node), "gone")
    assert (netdev.admin_state, netdev.mtu_bytes, netdev.link_layer) == (None, None, None)
