# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host below a temporary directory with the tools that host_info asks."""
from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo.io import Process

from tests.unit.plugins.fake import FakeNode, failed, ok, two_rails

ROOT_PROCESS = Process("aarch64", "3.12.3", "/usr/bin/python3.12", 0)
USER_PROCESS = Process("aarch64", "3.12.3", "/usr/bin/python3.12", 1000)
GPUS = ("0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0")
CHRONY = ("C0000201,192.0.2.1,3,1796010632.955623949,-0.000412000,0.000000404,0.1,-0.055,0.011,0.625,0.02,0.003,64.2,"
          "Normal\n")
SMI_HEAD = "==============NVSMI LOG==============\n\nDriver Version   : 580.126.09\nAttached GPUs    : 4\n"
SMI_GPU = """\
GPU {gpu}
    Product Name                          : NVIDIA GB200
    Fabric
        State                             : {state}
        Status                            : {status}
        CliqueId                          : {clique}
        ClusterUUID                       : {uuid}
        Health
            Summary                       : Healthy
            State                         : not the fabric's
    Processes                             : None
"""
UUID = "3f1b2c4d-0000-4000-8000-00000000000a"
LLDP = {"lldp": [{"interface": [
    {"name": "rail0", "via": "LLDP", "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:01:01"}],
                                                  "name": [{"value": "leaf01-r0"}]}],
     "port": [{"id": [{"type": "local", "value": "swp1s0"}], "ttl": [{"value": "120"}]}]},
    {"name": "rail1", "via": "LLDP", "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:01:02"}]}],
     "port": [{"id": [{"type": "ifname", "value": "swp1s1"}]}]}]}]}


def smi(state: str = "Completed", status: str = "Success", clique: t.Any = 1, uuid: str = UUID) -> str:
    return SMI_HEAD + "".join(SMI_GPU.format(gpu=f"0000{gpu}", state=state, status=status, clique=clique, uuid=uuid)
                              for gpu in GPUS)


@dataclass
class HostNode(FakeNode):
    tools: dict[tuple[str, ...], t.Callable[[], Result]] = field(default_factory=dict)

    def default(self, call: tuple[str, ...]) -> Result:
        for prefix, answer in self.tools.items():
            if call[:len(prefix)] == prefix:
                return answer()
        return super().default(call)

    def links(self) -> list[dict[str, t.Any]]:
        flags = ["BROADCAST", "UP", "LOWER_UP"]
        found = super().links()
        for link in found:
            link.update(flags=flags, mtu=1500)
            link["addr_info"] = [{"scope": "global", "prefixlen": 24, **one} for one in link["addr_info"]]
        return [{"ifname": "lo", "flags": flags, "addr_info": []}, *found]

    def function(self, pci: str, vendor: str, device: str, pci_class: str, node: int = 0, driver: str = "") -> None:
        base = f"/sys/bus/pci/devices/{pci}"
        for key, value in {"vendor": vendor, "device": device, "class": pci_class, "numa_node": node}.items():
            self.put(f"{base}/{key}", f"{value}\n")
        if driver:
            (self.root / base.lstrip("/") / "driver").symlink_to(f"../../../drivers/{driver}")


def gb200(root: Path) -> HostNode:
    """A tray with two of its rails, on Ubuntu."""
    node = HostNode(root)
    made = two_rails(root)
    node.rails = made.rails
    for rail in node.rails:
        node.put(f"/sys/bus/pci/devices/{rail.pci}/class", "0x020000\n")
    for number, pci in enumerate(GPUS):
        node.function(pci, "0x10de", "0x2941", "0x030200", number // 2)
    # A bridge of NVIDIA and a management function of a BlueField are neither.
    node.function("0008:00:00.0", "0x10de", "0x22b8", "0x060400")
    node.function("0006:01:00.2", "0x15b3", "0xc2d5", "0x080100")
    node.function("0006:01:00.0", "0x15b3", "0xa2dc", "0x020000", -1, "mlx5_core")
    node.put("/etc/os-release", 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n'
                                'ID=ubuntu\nID_LIKE=debian\n')
    node.put("/etc/machine-id", "4a1c3e0f5b7d49d2a8c6e1f203948576\n")
    node.put("/proc/sys/kernel/hostname", "gb200-1\n")
    node.put("/proc/sys/kernel/osrelease", "6.8.0-1024-nvidia-64k\n")
    node.put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
    node.put("/proc/meminfo", "MemTotal:       1005977600 kB\nMemFree:        1 kB\n")
    for number in range(4):
        place = f"/sys/devices/system/cpu/cpu{number}/topology"
        node.put(f"{place}/thread_siblings_list", f"{number}\n")
        node.put(f"{place}/physical_package_id", f"{number // 2}\n")
    (root / "sys/devices/system/cpu/cpu4").mkdir()
    (root / "sys/devices/system/cpu/cpufreq").mkdir()
    for number, cpus in ((0, "0-1"), (1, "2-3"), (2, ""), (10, "")):
        node.put(f"/sys/devices/system/node/node{number}/cpulist", f"{cpus}\n")
    node.put("/sys/class/dmi/id/product_name", "DGX GB200 Compute Tray\n")
    for path in ("boot", "var"):
        (root / path).mkdir()
    node.tools = {
        ("systemctl", "is-active", "NetworkManager.service"): lambda: failed(3),
        ("chronyc",): lambda: ok(CHRONY),
        ("timedatectl",): lambda: ok("NTPSynchronized=yes\n"),
        ("nvidia-smi", "-q"): lambda: ok(smi()),
        ("lldpcli",): lambda: ok(json.dumps(LLDP)),
        ("getent", "ahosts"): lambda: ok("192.0.2.1       STREAM gb200-1.example.com\n192.0.2.1       DGRAM\n"),
        ("getent", "hosts"): lambda: ok("192.0.2.1       gb200-1.example.com gb200-1\n"),
    }
    return node
