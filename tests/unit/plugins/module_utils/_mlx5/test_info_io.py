# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mlx5_info over directory trees: every naming style, several netdevs per function, relations, sparse tables."""
from __future__ import annotations

import errno
import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import info_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.info import NodeClass

from tests.unit.plugins.fake import FakeNode, Rail, failed, ok
from tests.unit.plugins.module_utils._roce.fake import Qos

A, B = "0000:03:00.0", "0002:03:00.0"


def read(node: FakeNode, rails: t.Sequence[str] = (), wanted: NodeClass | None = None) -> dict[str, t.Any]:
    return info_io.read(node.machine(), rails, wanted or NodeClass())


def device(data: dict[str, t.Any], pci: str = A) -> dict[str, t.Any]:
    found: dict[str, t.Any] = next(entry for entry in data["devices"] if entry["pci"] == pci)
    return found


def port(data: dict[str, t.Any], pci: str = A) -> dict[str, t.Any]:
    found: dict[str, t.Any] = device(data, pci)["ports"][0]
    return found


@pytest.mark.parametrize(("pci", "rdma", "netdev"), [
    ("0000:03:00.0", "mlx5_0", "ens1f0np0"), ("0000:01:00.0", "rocep1s0f0", "enp1s0f0np0"),
    ("0002:01:00.0", "roceP2p1s0f0", "enP2p1s0f0np0"), ("0000:c1:00.0", "mlx5_bond_0", "enp193s0f0np0"),
    ("0000:03:00.1", "mlx5_10", "eth7"), ("0000:9d:00.0", "ibp157s0", "p1p1"),
])
def test_names_of_every_style(tmp_path: Path, pci: str, rdma: str, netdev: str) -> None:
    node = FakeNode(tmp_path)
    node.add_netdev("eth0")
    node.add_rail(Rail(pci, netdev, rdma, "198.51.100.1"))
    found = read(node, [pci])
    assert found["problems"] == []
    one = device(found, pci)
    assert (one["rdma_device"], one["ports"][0]["netdev"], one["ports"][0]["role"]) == (rdma, netdev, "rail")
    assert [gid["address"] for gid in one["ports"][0]["gids"]][-1] == "198.51.100.1"


def test_several_netdevs_of_one_function(node: FakeNode) -> None:
    """VF representors and sub-functions stand beside the uplink (mlx5-roce 1.3)."""
    base = f"sys/bus/pci/devices/{A}/net"
    for name, label in (("rail0", "p0"), ("rail0_0", "pf0vf0"), ("en3f0pf0sf4", "pf0sf4"), ("odd", "")):
        (node.root / base / name).mkdir(exist_ok=True)
        node.put(f"/sys/class/net/{name}/phys_port_name", f"{label}\n")
    # GID 0 is the bond's or nobody's: the port's name must tell.
    node.put("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "\n")
    found = device(read(node))
    assert found["ports"][0]["netdev"] == "rail0"
    assert {entry["name"]: entry["kind"] for entry in found["netdev_details"]} == {
        "rail0": "uplink", "rail0_0": "vf_representor", "en3f0pf0sf4": "sf_representor", "odd": "other"}


def test_physical_and_virtual_functions(node: FakeNode) -> None:
    vf = "0000:03:00.2"
    node.put(f"/sys/bus/pci/devices/{vf}/vendor", "0x15b3\n")
    (node.root / f"sys/bus/pci/devices/{vf}/net/vf0").mkdir(parents=True)
    (node.root / f"sys/bus/pci/devices/{vf}/physfn").symlink_to(f"../{A}")
    (node.root / f"sys/bus/pci/devices/{A}/virtfn0").symlink_to(f"../{vf}")
    node.add_netdev("vf0")
    found = read(node)
    assert (device(found)["vfs"], device(found)["pf"], device(found)["is_vf"]) == ([vf], None, False)
    assert (device(found, vf)["vfs"], device(found, vf)["pf"], device(found, vf)["is_vf"]) == ([], A, True)


def test_bond_and_vlans(node: FakeNode) -> None:
    slave = {"master": "bond0", "linkinfo": {"info_slave_kind": "bond"}}
    node.link_fields = {"rail0": slave, "rail1": slave}
    original = node.links
    node.links = lambda: [*original(), {"ifname": "bond0", "mtu": 9000, "linkinfo": {"info_kind": "bond"}},  # type: ignore[method-assign]
                          {"ifname": "bond0.7", "mtu": 4200, "link": "bond0", "linkinfo": {"info_kind": "vlan"}}]
    found = port(read(node))
    assert (found["bond"], found["bond_mtu_bytes"], found["bond_members"]) == ("bond0", 9000, ("rail0", "rail1"))
    assert found["vlans"] == ({"name": "bond0.7", "parent": "bond0", "mtu_bytes": 4200},)
    assert (found["excluded"], found["role"]) == ("is a member of the bond bond0", "excluded")


def test_roles(node: FakeNode) -> None:
    node.default_device = "rail1"
    found = read(node, [A])
    assert (port(found)["role"], port(found, B)["role"]) == ("rail", "management")
    assert port(read(node))["role"] == "unused"


def test_a_sparse_table(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.read_text
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    for index in (4, 5, 6, 7):
        node.put(f"{base}/gids/{index}", "0000:0000:0000:0000:0000:0000:0000:0000\n")
    node.put(f"{base}/gids/12", "0000:0000:0000:0000:0000:ffff:c633:640c\n")
    node.put(f"{base}/gid_attrs/types/12", "RoCE v2\n")
    node.put(f"{base}/gid_attrs/ndevs/12", "net1\n")

    def read_text(self: Path, *arguments: t.Any, **options: t.Any) -> str:
        if "/gid_attrs/" in str(self) and self.name in ("2", "4", "5", "6", "7"):
            raise OSError(errno.EINVAL, "Invalid argument")
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    found = read(node)
    assert found["problems"] == []
    assert [gid["index"] for gid in port(found)["gids"]] == [0, 1, 3, 12]


def test_pcie_against_the_class(node: FakeNode) -> None:
    for pci, speed in ((A, "32.0 GT/s PCIe"), (B, "16.0 GT/s PCIe")):
        for name, value in (("current_link_speed", speed), ("max_link_speed", "32.0 GT/s PCIe"),
                            ("current_link_width", "16"), ("max_link_width", "16")):
            node.put(f"/sys/bus/pci/devices/{pci}/{name}", f"{value}\n")
    found = read(node, [A, B], NodeClass(32.0, 16))
    assert device(found)["pcie"] == {"current_speed_gts": 32.0, "current_width": 16, "max_speed_gts": 32.0,
                                     "max_width": 16}
    assert [finding["object"] for finding in found["findings"]] == [f"PCIe link of {B}"]
    assert read(node, [A, B])["findings"] == []


def test_counters_that_are_there(node: FakeNode) -> None:
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    node.put(f"{base}/hw_counters/np_cnp_sent", "1333\n")
    node.put(f"{base}/hw_counters/lifespan", "12\n")
    node.put(f"{base}/counters/link_downed", "2\n")
    node.put(f"{base}/counters/symbol_error", "N/A (no PMA)\n")
    found = read(node)
    assert port(found)["counters"] == {"np_cnp_sent": 1333, "link_downed": 2}
    assert port(found, B)["counters"] == {}


def test_ecn_of_ofed(node: FakeNode) -> None:
    base = "/sys/class/net/rail0/ecn"
    for prio in range(8):
        node.put(f"{base}/roce_np/enable/{prio}", "1\n")
        # 0 bytes: the firmware did not answer (mlx5-roce 1.6).
        node.put(f"{base}/roce_rp/enable/{prio}", "" if prio == 3 else "0\n")
    node.put(f"{base}/roce_np/cnp_dscp", "48\n")
    node.put(f"{base}/roce_np/cnp_802p_prio", "6\n")
    found = port(read(node))["ecn"]
    assert (found["source"], found["cnp_dscp"], found["cnp_priority"], found["min_time_between_cnps"]) == (
        "ecn", 48, 6, None)
    assert found["np_enabled"] == [True] * 8
    assert found["rp_enabled"] == [False] * 3 + [None] + [False] * 4


def test_ecn_of_the_inbox_driver_and_of_none(node: FakeNode) -> None:
    node.put(f"/sys/kernel/debug/mlx5/{A}/cc_params/np_cnp_dscp", "48\n")
    found = read(node)
    assert (port(found)["ecn"]["source"], port(found)["ecn"]["cnp_dscp"]) == ("cc_params", 48)
    assert port(found)["ecn"]["np_enabled"] is None
    assert (port(found, B)["ecn"]["source"], "debugfs needs root" in port(found, B)["ecn"]["why"]) == (None, True)


def test_qos_is_that_of_roce_qos(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    qos = Qos(node, monkeypatch)
    qos.ports["rail0"].update(app={26: 3}, pfc=[priority == 3 for priority in range(8)])
    found = read(node)
    one, other = port(found)["qos"], port(found, B)["qos"]
    assert (one["backend"], one["trust"], one["pfc"], one["dcbx"]) == ("dcb", "dscp", [3], "host")
    assert one["dscp_map"][26] == 3
    assert (other["trust"], other["pfc"], port(found, B)["qos_why"]) == ("pcp", [], None)
    assert len(qos.calls("dcb")) == 1, "one program for all ports"


def test_a_port_without_dcbnl_does_not_hide_the_others(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    qos = Qos(node, monkeypatch)
    asked = qos.dcb

    def refuse(call: tuple[str, ...]) -> Result:
        text = Path(call[-1]).read_text(encoding="ascii")
        return failed(1, "RTNETLINK answers: Operation not supported") if "rail1" in text else asked(call)

    node.override[("dcb",)] = refuse
    found = read(node)
    assert port(found)["qos"]["trust"] == "pcp"
    assert port(found, B)["qos"] is None and "not supported" in port(found, B)["qos_why"]


def test_without_a_tool_qos_says_why(node: FakeNode) -> None:
    found = read(node)
    assert port(found)["qos"] is None and "neither dcb nor mlnx_qos" in port(found)["qos_why"]
    assert found["problems"] == []


def test_what_needs_root_is_said(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.listdir

    def listdir(path: t.Any = ".") -> list[str]:
        if "/kernel/debug" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "listdir", listdir)
    found = read(node)
    assert found["needs_root"] == [f"/sys/kernel/debug/mlx5/{pci}/cc_params" for pci in (A, B)]
    assert found["problems"] == []


def test_stack(node: FakeNode) -> None:
    assert read(node)["stack"] == {"backend": "inbox", "version": None, "installed": None, "installed_version": None,
                                   "package": None}
    node.put("/proc/modules", "mlx5_core 1 0 - Live 0x0\nmlx_compat 1 1 mlx5_core, Live 0x0\n")
    node.put("/sys/module/mlx5_core/version", "24.10-2.1.8\n")
    node.override[("modinfo",)] = lambda argv: ok(
        "filename: /lib/modules/6/updates/dkms/mlx5_core.ko\nversion: 24.10-2.1.8\n")
    node.override[("ofed_info",)] = lambda argv: ok("OFED-internal-24.10-2.1.8:\n")
    found = read(node)
    assert found["stack"] == {"backend": "ofed", "version": "24.10-2.1.8", "installed": "ofed",
                              "installed_version": "24.10-2.1.8", "package": "OFED-internal-24.10-2.1.8"}
    assert found["findings"] == []


def test_number_of_tools(node: FakeNode) -> None:
    """At most 6 and 3 for each device."""
    read(node)
    assert len(node.calls) <= 6 + 3 * len(node.rails)


@pytest.mark.parametrize("state", ["inactive", "active"])
def test_saved_files_that_only_root_may_read(
        node: FakeNode, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile of NetworkManager is 0600: that the saved MTU cannot be known is said, and all else is there."""
    path = "/etc/NetworkManager/system-connections/aidc-rail0.nmconnection"
    if state == "active":
        path = node.rails[0].network_file
    node.networkd = state
    node.put(path, "[connection]\ninterface-name=rail0\n")
    original = Path.read_text

    def refuse(file: Path, *args: t.Any, **kwargs: t.Any) -> str:
        if file == node.root / path[1:]:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return original(file, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refuse)
    found = read(node)
    assert found["needs_root"] == [str(node.root / path[1:])]
    assert [(one["got"], one["hint"]) for one in found["problems"]] == [("Permission denied", "run as root")]
    assert port(found)["mtu_bytes"] == 1500 and port(found)["saved_mtu_bytes"] is None
