# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host_info over a directory tree and tools that are functions."""
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo import io

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.host_node import GPUS, ROOT_PROCESS, USER_PROCESS, UUID, HostNode, gb200, smi


@pytest.fixture(name="tray")
def fixture_tray(tmp_path: Path) -> HostNode:
    return gb200(tmp_path)


def read(node: HostNode, process: io.Process = ROOT_PROCESS) -> dict[str, t.Any]:
    return io.read(node.machine(), process)


def missing() -> Result:
    return Result((), "missing")


def hung() -> Result:
    return Result((), "timeout", None, "", "no answer within 1 s; ended by us")


def test_a_whole_tray(tray: HostNode) -> None:
    found = read(tray)
    assert found["problems"] == [] and found["findings"] == [] and found["needs_root"] == []
    assert (found["os"]["id"], found["os"]["version"], found["os"]["family"]) == ("ubuntu", "24.04", "debian")
    assert (found["architecture"], found["kernel"]) == ("aarch64", "6.8.0-1024-nvidia-64k")
    assert (found["hostname"], found["machine_id"]) == ("gb200-1", "4a1c3e0f5b7d49d2a8c6e1f203948576")
    assert found["python"] == {"version": "3.12.3", "executable": "/usr/bin/python3.12"}
    # The processor without topology is offline; nodes 2 and 10 are the memory of GPUs.
    assert found["cpu"] == {"model": "Neoverse-V2", "cores": 4, "threads": 4, "sockets": 2, "numa_nodes": 2}
    assert found["memory"] == {"total_mib": 982400}
    assert [(gpu["pci"], gpu["pci_id"], gpu["name"], gpu["numa_node"]) for gpu in found["gpus"]] == [
        (pci, "10de:2941", "GB200", number // 2) for number, pci in enumerate(GPUS)]
    assert [(nic["pci"], nic["kind"], nic["driver"], nic["numa_node"]) for nic in found["nics"]] == [
        ("0000:03:00.0", "connectx", "mlx5_core", 0), ("0002:03:00.0", "connectx", "mlx5_core", 0),
        ("0006:01:00.0", "bluefield", "mlx5_core", None)]
    assert found["nvlink_domain"] == {"cluster_uuid": UUID, "clique_id": 1}
    assert found["drivers"]["mlx5"]["backend"] == "inbox"
    assert {net["name"]: (net["owner"], net["addresses"]) for net in found["netdevs"]} == {
        "eth0": ("networkd", ["192.0.2.1/24"]), "rail0": ("networkd", ["198.51.100.1/24"]),
        "rail1": ("networkd", ["203.0.113.1/24"])}
    assert found["default_routes"] == [
        {"family": 4, "route": 0, "device": "eth0", "gateway": "192.0.2.254", "metric": 0}]
    assert [(one["netdev"], one["chassis"], one["port"]) for one in found["lldp"]] == [
        ("rail0", "leaf01-r0", "swp1s0"), ("rail1", None, "swp1s1")]
    assert found["time"] == {"source": "chrony", "synchronised": True, "offset_seconds": -0.000412, "stratum": 3}
    assert found["names"] == {"addresses": ["192.0.2.1"], "fqdn": "gb200-1.example.com",
                              "reverse": {"192.0.2.1": ["gb200-1.example.com", "gb200-1"]}}
    assert [disk["path"] for disk in found["disks"]] == ["/", "/boot", "/var"]
    assert all(0 < disk["free_bytes"] <= disk["size_bytes"] for disk in found["disks"])
    assert "disk /usr/src" in found["why"]
    assert found["dmi"]["product"] == "DGX GB200 Compute Tray" and found["base_os"] is None


def test_every_tool_is_missing(tray: HostNode) -> None:
    """Null with a word each, no problem: a bare host is not broken. Only what we cannot do without is one."""
    tray.override[()] = lambda argv: Result(argv, "missing")
    found = read(tray)
    assert (found["netdevs"], found["lldp"], found["nvlink_domain"], found["names"]["addresses"]) == (None,) * 4
    assert found["time"] == {"source": None, "synchronised": None, "offset_seconds": None, "stratum": None}
    assert {"time", "lldp", "nvlink_domain", "names", "netdevs", "default_routes", "nvidia"} <= set(found["why"])
    assert all("not installed" in found["why"][name] for name in ("time", "lldp", "nvlink_domain", "names"))
    assert found["problems"] == []


@pytest.mark.parametrize(("tool", "name"), [
    (("nvidia-smi",), "nvlink_domain"), (("lldpcli",), "lldp"), (("chronyc",), "time"), (("getent", "ahosts"), "names"),
    (("ip", "-j", "-4"), "default_routes"), (("getent", "hosts"), "reverse"), (("networkctl",), "network_owner"),
])
@pytest.mark.parametrize("answer", [hung, lambda: ok("\x00garbage, {\n")])
def test_a_tool_that_hangs_or_prints_garbage(
        tray: HostNode, tool: tuple[str, ...], name: str, answer: t.Callable[[], Result]) -> None:
    tray.override[tool] = lambda argv: answer()
    found = read(tray)
    if (tool, answer is hung) == (("getent", "hosts"), False):
        # Text of another shape names nobody: then the address has no name.
        assert found["names"]["reverse"] == {"192.0.2.1": []}
        return
    assert name in found["why"]
    assert [one["object"].split()[0] for one in found["problems"]] == [tool[0]]
    # Without chrony's answer systemd's is taken.
    assert found["time"]["source"] == ("timedatectl" if name == "time" else "chrony")


def test_no_chronyd(tray: HostNode) -> None:
    tray.tools[("chronyc",)] = lambda: Result((), "failed", 1, "506 Cannot talk to daemon\n")
    found = read(tray)
    assert found["time"] == {"source": "timedatectl", "synchronised": True, "offset_seconds": None, "stratum": None}
    assert found["problems"] == []


def test_a_user_who_is_not_root(tray: HostNode) -> None:
    tray.tools[("lldpcli",)] = lambda: failed(1, "unable to connect to socket /run/lldpd.socket: Permission denied")
    found = read(tray, USER_PROCESS)
    assert (found["uid"], found["lldp"], found["needs_root"]) == (1000, None, ["lldp"])
    assert found["problems"] == [] and "Permission denied" in found["why"]["lldp"]
    # For root the same answer is a problem.
    assert read(tray)["needs_root"] == [] and len(read(tray)["problems"]) == 1


def test_a_serial_number_that_only_root_reads(tray: HostNode, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.read_text

    def refuse(path: Path, *args: t.Any, **kwargs: t.Any) -> str:
        if path.name == "product_serial":
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refuse)
    found = read(tray, USER_PROCESS)
    assert found["needs_root"] == ["/sys/class/dmi/id/product_serial"]
    assert found["dmi"]["serial"] is None and found["problems"] == []


def test_two_default_routes(tray: HostNode) -> None:
    routes = [{"dst": "default", "gateway": "192.0.2.254", "dev": "eth0", "metric": 100},
              {"dst": "default", "gateway": "198.51.100.254", "dev": "rail0", "metric": 200}]
    tray.override[("ip", "-j", "-4", "route")] = lambda argv: ok(json.dumps(routes))
    found = read(tray)
    assert [one["object"] for one in found["findings"]] == ["default route (IPv4)"]
    assert len(found["default_routes"]) == 2


def test_two_managers_of_a_port(tray: HostNode) -> None:
    tray.tools[("systemctl", "is-active", "NetworkManager.service")] = lambda: ok("active\n")
    tray.tools[("nmcli", "-t", "-f", "DEVICE,TYPE,STATE,CONNECTION")] = lambda: ok("rail0:ethernet:connected:rail0\n")
    tray.tools[("nmcli", "-t", "-f", "NAME,UUID,TYPE,DEVICE,FILENAME")] = lambda: ok(
        "rail0:u:802-3-ethernet:rail0:/etc/NetworkManager/system-connections/rail0.nmconnection\n")
    found = read(tray)
    assert [(one["object"], one["got"]) for one in found["findings"]] == [
        ("owner of rail0", "systemd-networkd and NetworkManager")]
    assert next(net for net in found["netdevs"] if net["name"] == "rail0")["owner"] is None


def test_gpus_without_a_fabric_and_no_gpu(tray: HostNode) -> None:
    tray.tools[("nvidia-smi", "-q")] = lambda: ok(smi("N/A", "N/A", "N/A", "N/A"))
    assert "State N/A" in read(tray)["why"]["nvlink_domain"]
    for pci in GPUS:
        tray.put(f"/sys/bus/pci/devices/{pci}/class", "0x040300\n")
    tray.calls.clear()
    assert (read(tray)["gpus"], read(tray)["why"]["nvlink_domain"]) == ([], "no NVIDIA GPU on the PCI bus")
    assert not any(call[0] == "nvidia-smi" for call in tray.calls)


def test_the_nvidia_driver(tray: HostNode) -> None:
    tray.put("/sys/module/nvidia/version", "580.126.09\n")
    assert read(tray)["drivers"]["nvidia"] == {"version": "580.126.09", "flavour": None}
    tray.put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.126.09  R\n")
    assert read(tray)["drivers"]["nvidia"] == {"version": "580.126.09", "flavour": "open"}
    tray.put("/proc/driver/nvidia/version", "garbage\n")
    found = read(tray)
    assert found["drivers"]["nvidia"]["flavour"] is None and found["problems"][0]["object"].endswith("nvidia/version")


def test_an_unknown_name_and_an_address_without_one(tray: HostNode) -> None:
    tray.tools[("getent", "hosts")] = lambda: failed(2)
    assert read(tray)["names"]["reverse"] == {"192.0.2.1": []}
    tray.tools[("getent", "ahosts")] = lambda: failed(2)
    found = read(tray)
    assert found["names"] == {"addresses": [], "fqdn": None, "reverse": None} and found["problems"] == []


def test_broken_and_absent_files(tray: HostNode) -> None:
    tray.put("/etc/os-release", "garbage\n")
    assert read(tray)["os"] is None and read(tray)["problems"][0]["object"] == "/etc/os-release"
    (tray.root / "etc/os-release").unlink()
    assert (read(tray)["os"], read(tray)["why"]["os"]) == (None, "no os-release")
    tray.put("/usr/lib/os-release", "ID=debian\nVERSION_ID=13\n")
    tray.put("/etc/dgx-release", 'DGX_SWBUILD_VERSION="7.1.0"\n')
    assert (read(tray)["os"]["id"], read(tray)["base_os"]["version"]) == ("debian", "7.1.0")


def test_nothing_is_written_and_each_question_asked_once(tray: HostNode) -> None:
    before = tray.files()
    read(tray)
    assert tray.files() == before
    assert len(set(tray.calls)) == len(tray.calls)
    assert len(tray.calls) <= 16
