# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of the three classes below a temporary directory, with the tools that gpu_info asks.

Layouts of nvidia-smi are those of real boards: narrow keys and T.Limit margins up to 570, wide ones since 580.
"""
from __future__ import annotations

import shutil
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Wanted
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import FakeNode, Rail, ok

UUID = "3f1b2c4d-0000-4000-8000-00000000000a"
OPEN = ("NVRM version: NVIDIA UNIX Open Kernel Module for {arch}  {version}  Release Build  "
        "(dvs-builder@U22-I3-AF04-07-5)  Wed Jan  7 22:35:57 UTC 2026")
CLOSED = "NVRM version: NVIDIA UNIX {arch} Kernel Module  {version}  Tue Jun 23 08:38:17 UTC 2026"
GCC = "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)"
PARAMS = ("ResmanDebugLevel: 4294967295\nDeviceFileMode: 438\nEnableStreamMemOPs: 0\nCreateImexChannel0: 0\n"
          'RegistryDwords: ""\nExcludedGpus: ""\n')
MODINFO = ("filename:       /lib/modules/6.8.0-1024/updates/dkms/nvidia.ko\nversion:        {version}\n"
           "license:        {licence}\nparm:           NVreg_RegistryDwords:charp\n"
           "parm:           NVreg_CoherentGPUMemoryMode:charp\n")
INFORMATION = ("Model: \t\t {name}\nIRQ:   \t\t 440\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.74.00.01\n"
               "Bus Type: \t PCIe\nBus Location: \t {pci}\nDevice Minor: \t {minor}\nGPU Firmware: \t {version}\n"
               "GPU Excluded:\t No\n")
UNIT = "Id={name}\nLoadState={load}\nActiveState={active}\nUnitFileState={enabled}\n"
TEMPERATURE = {"GPU Current Temp": "36 C", "GPU T.Limit Temp": "50 C", "GPU Shutdown T.Limit Temp": "-8 C",
               "GPU Slowdown T.Limit Temp": "-2 C", "GPU Max Operating T.Limit Temp": "0 C",
               "GPU Target Temperature": "N/A", "Memory Current Temp": "44 C",
               "Memory Max Operating T.Limit Temp": "0 C"}
NO_EVENTS = {"Idle": "Active", "Applications Clocks Setting": "Not Active", "SW Power Cap": "Not Active",
             "HW Slowdown": "Not Active", "HW Thermal Slowdown": "Not Active", "HW Power Brake Slowdown": "Not Active",
             "Sync Boost": "Not Active", "SW Thermal Slowdown": "Not Active", "Display Clock Setting": "Not Active"}
ERRORS = {"SRAM Correctable": "0", "SRAM Uncorrectable Parity": "0", "SRAM Uncorrectable SEC-DED": "0",
          "DRAM Correctable": "0", "DRAM Uncorrectable": "0"}
NVL_FABRIC: dict[str, t.Any] = {
    "State": "Completed", "Status": "Success", "CliqueId": "1", "ClusterUUID": UUID,
    "Health": {"Summary": "Healthy", "Bandwidth": "Full"}}


def card(name: str, uuid: str, memory: int, mig: str = "Disabled") -> dict[str, t.Any]:
    """Sections of one GPU in ``nvidia-smi -q``."""
    return {
        "Product Name": name, "Persistence Mode": "Enabled", "MIG Mode": {"Current": mig, "Pending": mig},
        "GPU UUID": uuid, "GPU Reset Status": {"Reset Required": "No", "Drain and Reset Recommended": "No"},
        "GPU Recovery Action": "None", "Clocks Event Reasons": dict(NO_EVENTS),
        "Clocks Event Reasons Counters": {"SW Power Capping": "12 us", "SW Thermal Slowdown": "Active"},
        "FB Memory Usage": {"Total": f"{memory} MiB", "Used": "0 MiB"},
        "BAR1 Memory Usage": {"Total": "131072 MiB", "Used": "1 MiB"},
        "ECC Mode": {"Current": "Enabled", "Pending": "Enabled"},
        "ECC Errors": {"Volatile": dict(ERRORS), "Aggregate": {**ERRORS, "DRAM Correctable": "3"}},
        "Retired Pages": {"Single Bit ECC": "N/A", "Pending Page Blacklist": "N/A"},
        "Remapped Rows": {"Correctable Error": "0", "Uncorrectable Error": "0", "Pending": "No",
                          "Remapping Failure Occurred": "No"},
        "Temperature": dict(TEMPERATURE),
        "Clocks": {"Graphics": "345 MHz", "SM": "345 MHz", "Memory": "2619 MHz", "Video": "765 MHz"},
        "Max Clocks": {"SM": "1980 MHz", "Memory": "2619 MHz"},
        "Fabric": {"State": "N/A", "Status": "N/A"}, "Processes": "None",
    }


def _render(data: dict[str, t.Any], indent: int, width: int) -> str:
    lines = ""
    for key, value in data.items():
        if isinstance(value, dict):
            lines += f"{' ' * indent}{key}\n{_render(value, indent + 4, width)}"
        else:
            # As printed: these two stand below HW Slowdown, which has a value itself.
            deeper = 4 if key.startswith("HW ") and key != "HW Slowdown" else 0
            lines += f"{f'{chr(32) * (indent + deeper)}{key}':<{width}}: {value}\n"
    return lines


def smi_log(cards: dict[str, dict[str, t.Any]], version: str, width: int) -> str:
    head = "\n==============NVSMI LOG==============\n\n"
    top = {"Timestamp": "Tue Dec  1 02:03:08 2026", "Driver Version": version, "CUDA Version": "13.0"}
    text = head + _render(top, 0, width) + "\n" + _render({"Attached GPUs": str(len(cards))}, 0, width)
    for pci, data in cards.items():
        domain, rest = pci.split(":", 1)
        text += f"GPU {domain:0>8}:{rest.upper()}\n{_render(data, 4, width)}\n"
    return text


@dataclass
class GpuNode(FakeNode):
    version: str = "580.126.09"
    width: int = 51
    cards: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    units: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    packages: list[tuple[str, ...]] = field(default_factory=list)
    journal: str = ""
    active_links: int = 0
    topo: str = ""

    def default(self, call: tuple[str, ...]) -> Result:
        answers: dict[tuple[str, ...], t.Callable[[], Result]] = {
            ("nvidia-smi", "-q"): lambda: ok(smi_log(self.cards, self.version, self.width)),
            ("nvidia-smi", "nvlink", "-s"): lambda: ok(self.nvlinks()),
            ("nvidia-smi", "topo", "-m"): lambda: ok(self.topo),
            ("modinfo", "nvidia"): lambda: ok(MODINFO.format(version=self.version, licence="Dual MIT/GPL")),
            ("dpkg-query",): lambda: ok("".join("\t".join(one) + "\n" for one in self.packages)),
            ("systemctl", "show"): lambda: ok(self.show(call)),
            ("journalctl",): lambda: ok(self.journal) if self.journal else Result((), "failed", 1),
        }
        for prefix, answer in answers.items():
            if call[:len(prefix)] == prefix:
                return answer()
        return super().default(call)

    def show(self, call: tuple[str, ...]) -> str:
        return "\n".join(UNIT.format(name=name, load=load, active=active, enabled=enabled) for name in call[4:]
                         for load, active, enabled in (self.units.get(name, ("not-found", "inactive", "")),))

    def nvlinks(self) -> str:
        text = ""
        for number, data in enumerate(self.cards.values()):
            text += f"GPU {number}: {data['Product Name']} (UUID: {data['GPU UUID']})\n"
            text += "".join(f"\t Link {link}: 50 GB/s\n" for link in range(self.active_links))
        return text

    def function(self, pci: str, place: str, driver: str, node: int, files: dict[str, str]) -> None:
        """A PCI function at its place below the host bridge."""
        base = f"/sys/devices/{place}/{pci}"
        for key, value in {"numa_node": str(node), "config": "\xde\x10\x41\x29", **files}.items():
            self.put(f"{base}/{key}", f"{value}\n")
        (self.root / base.lstrip("/") / "driver").symlink_to(f"../../../drivers/{driver}")
        self._link(pci, place)

    def _link(self, pci: str, place: str) -> None:
        link = self.root / f"sys/bus/pci/devices/{pci}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../devices/{place}/{pci}")

    def gpu(self, pci: str, device: str, place: str, node: int, data: dict[str, t.Any]) -> None:
        link = {"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
                "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"}
        self.function(pci, place, "nvidia", node,
                      {"vendor": "0x10de", "device": f"0x{device}", "class": "0x030200", **link})
        minor = len(self.cards)
        self.cards[pci] = data
        self.put(f"/proc/driver/nvidia/gpus/{pci}/information", INFORMATION.format(
            name=data["Product Name"], uuid=data["GPU UUID"], pci=pci, minor=minor, version=self.version))

    def nic(self, pci: str, netdev: str, rdma: str, address: str, place: str, node: int) -> None:
        self.add_rail(Rail(pci, netdev, rdma, address))
        real = self.root / f"sys/devices/{place}"
        real.mkdir(parents=True, exist_ok=True)
        shutil.move(str(self.root / f"sys/bus/pci/devices/{pci}"), str(real / pci))
        self._link(pci, place)
        self.put(f"/sys/devices/{place}/{pci}/numa_node", f"{node}\n")
        self.put(f"/sys/devices/{place}/{pci}/class", "0x020000\n")

    def driver(self, version_line: str, arch: str, library: str) -> None:
        line = version_line.format(arch=arch, version=self.version)
        self.put("/proc/driver/nvidia/version", f"{line}\n{GCC}\n")
        self.put("/proc/driver/nvidia/params", PARAMS)
        self.put("/sys/module/nvidia/version", f"{self.version}\n")
        self.put("/sys/module/nvidia/refcnt", "12\n")
        (self.root / "sys/module/nvidia/holders/nvidia_uvm").mkdir(parents=True)
        self.put(f"{library}/libnvidia-ml.so.{self.version}", "")
        (self.root / library.lstrip("/") / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{self.version}")
        self.put("/proc/1/comm", "systemd\n")
        (self.root / "proc/1/fd").mkdir()

    def read(self, rails: t.Sequence[str] = (), **wanted: t.Any) -> dict[str, t.Any]:
        return io.read(self.machine(), rails, "Ethernet", Wanted(**wanted))


def uuid(number: int) -> str:
    return f"GPU-00000000-0000-0000-0000-00000000000{number}"


def gb200(root: Path) -> GpuNode:
    """A tray: four domains, none of which is 0000; rails in domains of their own."""
    node = GpuNode(root, active_links=18)
    for number, domain in enumerate(("0008", "0009", "0018", "0019")):
        data = card("NVIDIA GB200", uuid(number), 189471)
        data["Fabric"] = {**NVL_FABRIC, "Health": dict(NVL_FABRIC["Health"])}
        node.gpu(f"{domain}:01:00.0", "2941", f"pci{domain}:00/{domain}:00:00.0", number // 2, data)
    for number, domain in enumerate(("0000", "0002", "0010", "0012")):
        node.nic(f"{domain}:03:00.0", f"rail{number}", f"mlx5_{number + number // 2}", f"198.51.100.{number + 1}",
                 f"pci{domain}:00/{domain}:00:00.0/{domain}:01:00.0/{domain}:02:00.0", number // 2)
    # A BlueField for management and storage, and a bridge of NVIDIA.
    node.nic("0006:03:00.0", "p0", "mlx5_2", "192.0.2.9", "pci0006:00/0006:00:00.0", 0)
    node.put("/sys/devices/pci0006:00/0006:00:00.0/0006:03:00.0/device", "0xa2dc\n")
    node.function("0008:00:00.0", "pci0008:00", "pcieport", 0,
                  {"vendor": "0x10de", "device": "0x22b8", "class": "0x060400"})
    node.driver(OPEN, "aarch64", "/usr/lib/aarch64-linux-gnu")
    node.units = {"nvidia-imex.service": ("loaded", "active", "enabled"),
                  "nvidia-persistenced.service": ("loaded", "active", "enabled")}
    node.packages = [("nvidia-imex", "580.126.09-1", "hold", "installed"),
                     ("nvidia-open", "580.126.09-1ubuntu1", "hold", "installed"),
                     ("nvidia-driver-570", "", "unknown", "not-installed")]
    return node


def l40s(root: Path) -> GpuNode:
    """Two cards and a NIC below one switch at socket 1; two cards at ports of the other socket's host bridge."""
    node = GpuNode(root, version="570.211.01", width=42)
    places = [("0000:42:00.0", "pci0000:40/0000:40:01.1", 0), ("0000:43:00.0", "pci0000:40/0000:40:03.1", 0),
              ("0000:85:00.0", "pci0000:80/0000:80:01.1/0000:81:00.0/0000:82:00.0", 1),
              ("0000:86:00.0", "pci0000:80/0000:80:01.1/0000:81:00.0/0000:82:01.0", 1)]
    for number, (pci, place, numa) in enumerate(places):
        data = card("NVIDIA L40S", uuid(number), 46068, "N/A")
        node.gpu(pci, "26b9", place, numa, data)
    node.nic("0000:41:00.0", "rail0", "mlx5_0", "198.51.100.1", "pci0000:40/0000:40:05.1", 0)
    node.nic("0000:84:00.0", "rail1", "mlx5_1", "203.0.113.1",
             "pci0000:80/0000:80:01.1/0000:81:00.0/0000:82:02.0", 1)
    node.driver(CLOSED, "x86_64", "/usr/lib/x86_64-linux-gnu")
    node.override[("modinfo", "nvidia")] = lambda call: ok(MODINFO.format(version=node.version, licence="NVIDIA"))
    node.topo = TOPO
    return node


TOPO = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tPHB\tSYS\tSYS\tPHB\tSYS\t0-63\t0\t\tN/A
GPU1\tPHB\t X \tSYS\tSYS\tPHB\tSYS\t0-63\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tPIX\tSYS\tPIX\t64-127\t1\t\tN/A
GPU3\tSYS\tSYS\tPIX\t X \tSYS\tPIX\t64-127\t1\t\tN/A
NIC0\tPHB\tPHB\tSYS\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tPIX\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  PIX  = Connection traversing at most a single PCIe bridge

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""


def epyc(root: Path) -> GpuNode:
    node = GpuNode(root)
    node.nic("0000:81:00.0", "rail0", "mlx5_0", "198.51.100.1", "pci0000:80/0000:80:01.1", 0)
    return node
