# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI side of a rail or a GPU: configuration space and the attributes of the function and its root port."""
from __future__ import annotations

import dataclasses
import errno
import posixpath
import struct
from collections.abc import Callable

from lab.hardware.nodes import Attr, File, Link, Node, fail
from lab.hardware.spec import PCI, FunctionSpec, GpuSpec, RailSpec

CONFIG_SIZE = 4096
UNPRIVILEGED_SIZE = 64  # what the kernel lets others than root read
CAP_EXPRESS = 0x60
DEVICE_CONTROL = CAP_EXPRESS + 8
SPEED_CODES = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
BAR_SIZE = 32 << 20
BAR_FLAGS = 0x14220C  # 64 bit, prefetchable memory
BRIDGE_CLASS = "0x060400"
# VF of ConnectX from -5 on (host-setup 4).
VF_DEVICE = "0x101e"
# A device has 8 functions; cards with more put them on further bus numbers.
VFS_MOST = 7
ACTIONS = ("add", "remove", "change", "move", "online", "offline", "bind", "unbind")


def bar_address(rail: RailSpec) -> int:
    """A place of its own for each rail, above 4 GiB."""
    return 0x380000000000 + rail.rail * 0x1000000000


def gpu_bar_address(gpu: GpuSpec) -> int:
    """Above those of the rails."""
    return 0x480000000000 + gpu.gpu * 0x1000000000


def _express(rail: FunctionSpec, port_type: int) -> bytes:
    """PCI Express capability: enough for lspci's DevCtl, LnkCap and LnkSta lines (mlx5-roce 5.6)."""
    able, link = (SPEED_CODES.get(speed.split()[0], 5) | int(width) << 4
                  for speed, width in ((rail.pcie_speed, rail.pcie_width), rail.link))
    control = 0x2810 | 1 << 5  # relaxed ordering, no snoop, MaxPayload 256, MaxReadReq 512
    return struct.pack("<BBHIHHIHH", 0x10, 0, port_type << 4 | 2, 0x8002, control, 0, able, 0, link)


def _header(vendor: str, device: str, pci_class: str, revision: str, header_type: int) -> bytearray:
    config = bytearray(CONFIG_SIZE)
    # memory and bus master on; a capability list
    struct.pack_into("<HHHH", config, 0, int(vendor, 16), int(device, 16), 0x0406, 0x0010)
    struct.pack_into("<I", config, 8, int(pci_class, 16) << 8 | int(revision, 16))
    config[0x0C], config[0x0E], config[0x34], config[0x3D] = 0x10, header_type, CAP_EXPRESS, 1
    return config


def function_config(rail: RailSpec) -> bytearray:
    """Multi-function bit set: udev's name has ``f0`` only then."""
    config = _header(rail.vendor, rail.device, rail.pci_class, rail.revision, 0x80)
    struct.pack_into("<Q", config, 0x10, bar_address(rail) | 0xC)
    struct.pack_into("<HH", config, 0x2C, int(rail.subsystem_vendor, 16), int(rail.subsystem_device, 16))
    express = _express(rail, 0)
    config[CAP_EXPRESS:CAP_EXPRESS + len(express)] = express
    return config


def gpu_config(gpu: GpuSpec) -> bytearray:
    """A GPU is the only function of its device."""
    config = _header(gpu.vendor, gpu.device, gpu.pci_class, gpu.revision, 0x00)
    struct.pack_into("<Q", config, 0x10, gpu_bar_address(gpu) | 0xC)
    struct.pack_into("<HH", config, 0x2C, int(gpu.subsystem_vendor, 16), int(gpu.subsystem_device, 16))
    express = _express(gpu, 0)
    config[CAP_EXPRESS:CAP_EXPRESS + len(express)] = express
    return config


def bridge_config(rail: FunctionSpec) -> bytearray:
    config = _header(rail.bridge_vendor, rail.bridge_device, BRIDGE_CLASS, "0x00", 1)
    buses = [int(PCI.fullmatch(address).group(2), 16) for address in (rail.bridge, rail.pci)]  # type: ignore[union-attr]
    config[0x18:0x1B] = bytes([buses[0], buses[1], buses[1]])
    express = _express(rail, 4)
    config[CAP_EXPRESS:CAP_EXPRESS + len(express)] = express
    return config


class Config(File):
    """Configuration space. Only the device control register takes writes (setpci CAP_EXP+08.w, mlx5-roce 5.6)."""

    size = CONFIG_SIZE
    snapshot = False

    def __init__(self, data: bytearray, privileged: Callable[[], bool],
                 answers: Callable[[], bool] = lambda: True) -> None:
        super().__init__(0o644)
        self.data = data
        self.privileged = privileged
        self.answers = answers

    def read(self) -> bytes:
        """All ones from a device that has fallen off the bus [Linux include/linux/pci.h, PCI_ERROR_RESPONSE]."""
        data = bytes(self.data) if self.answers() else b"\xff" * len(self.data)
        return data if self.privileged() else data[:UNPRIVILEGED_SIZE]

    def write(self, data: bytes, offset: int) -> None:
        for position, value in enumerate(data, offset):
            if DEVICE_CONTROL <= position < DEVICE_CONTROL + 2:
                self.data[position] = value


def uevent(text: str) -> Attr:
    """A uevent file that takes the kernel's actions; of a PCI function nobody in the host hears them."""
    def store(action: str) -> None:
        if action.split(" ")[0] not in ACTIONS:
            raise fail(errno.EINVAL)

    return Attr(text, store)


def modalias(vendor: str, device: str, sub_vendor: str, sub_device: str, pci_class: str) -> str:
    v, d, sv, sd, c = (int(text, 16) for text in (vendor, device, sub_vendor, sub_device, pci_class))
    return f"pci:v{v:08X}d{d:08X}sv{sv:08X}sd{sd:08X}bc{c >> 16:02X}sc{c >> 8 & 255:02X}i{c & 255:02X}"


def _common(rail: FunctionSpec, ids: tuple[str, str, str, str, str], address: str, driver: str) -> dict[str, Node]:
    vendor, device, sub_vendor, sub_device, pci_class = ids
    alias = modalias(*ids)
    short = f"{int(vendor, 16):04X}:{int(device, 16):04X}"
    sub = f"{int(sub_vendor, 16):04X}:{int(sub_device, 16):04X}"
    return {
        "vendor": Attr(vendor), "device": Attr(device), "class": Attr(pci_class),
        "subsystem_vendor": Attr(sub_vendor), "subsystem_device": Attr(sub_device),
        "numa_node": Attr(str(rail.numa_node)), "local_cpulist": Attr(rail.local_cpulist),
        "current_link_speed": Attr(rail.link[0]), "max_link_speed": Attr(rail.pcie_speed),
        "current_link_width": Attr(rail.link[1]), "max_link_width": Attr(rail.pcie_width),
        "modalias": Attr(alias),
        "uevent": uevent(f"{driver}PCI_CLASS={int(pci_class, 16):X}\nPCI_ID={short}\nPCI_SUBSYS_ID={sub}\n"
                         f"PCI_SLOT_NAME={address}\nMODALIAS={alias}"),
    }


def _resources(start: int) -> str:
    lines = [(start, start + BAR_SIZE - 1, BAR_FLAGS) if start else (0, 0, 0)] + [(0, 0, 0)] * 12
    return "\n".join(" ".join(f"0x{value:016x}" for value in line) for line in lines)


def _ids(function: FunctionSpec) -> tuple[str, str, str, str, str]:
    return (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device, function.pci_class)


def gpu(spec: GpuSpec, privileged: Callable[[], bool], answers: Callable[[], bool] = lambda: True) -> dict[str, Node]:
    """Attributes of a GPU's PCI function (host-setup.md 4)."""
    return {
        **_common(spec, _ids(spec), spec.pci, ""),
        "revision": Attr(spec.revision), "irq": Attr(str(spec.irq)), "enable": Attr("0"),
        "resource": Attr(_resources(gpu_bar_address(spec))),
        "config": Config(gpu_config(spec), privileged, answers),
        "subsystem": Link(posixpath.relpath("bus/pci", spec.pci_dir)),
    }


def function(rail: RailSpec, config: bytearray, privileged: Callable[[], bool]) -> dict[str, Node]:
    """Attributes of the NIC's PCI function (mlx5-roce 6.2), without driver, netdev and RDMA device."""
    return {
        **_common(rail, _ids(rail), rail.pci, "DRIVER=mlx5_core\n"),
        "revision": Attr(rail.revision), "irq": Attr(str(rail.irq)), "enable": Attr("1"),
        "resource": Attr(_resources(bar_address(rail))),
        "config": Config(config, privileged),
        "subsystem": Link(posixpath.relpath("bus/pci", rail.pci_dir)),
    }


def virtual(rail: RailSpec, number: int, privileged: Callable[[], bool]) -> dict[str, Node]:
    """A virtual function as the bus shows it: no driver has it, as when a virtual machine is to get it."""
    pci = virtual_address(rail, number)
    spec = dataclasses.replace(rail, pci=pci, device=VF_DEVICE, irq=0)
    return {
        **_common(spec, _ids(spec), pci, ""),
        "revision": Attr(spec.revision), "irq": Attr("0"), "enable": Attr("0"), "resource": Attr(_resources(0)),
        "config": Config(function_config(spec), privileged),
        "physfn": Link(f"../{rail.pci}"),
        "subsystem": Link(posixpath.relpath("bus/pci", spec.pci_dir)),
    }


def virtual_address(rail: RailSpec, number: int) -> str:
    """The functions behind the physical one, from number 1."""
    return f"{rail.pci[:-1]}{number}"


def bridge(rail: FunctionSpec, privileged: Callable[[], bool]) -> dict[str, Node]:
    """Attributes of the root port above a NIC or GPU; no driver is shown for it."""
    ids = (rail.bridge_vendor, rail.bridge_device, "0x0000", "0x0000", BRIDGE_CLASS)
    where = posixpath.dirname(rail.pci_dir)
    return {
        **_common(rail, ids, rail.bridge, ""),
        "revision": Attr("0x00"), "irq": Attr(str(rail.irq - 1)), "enable": Attr("1"),
        "resource": Attr(_resources(0)),
        "config": Config(bridge_config(rail), privileged),
        "subsystem": Link(posixpath.relpath("bus/pci", where)),
    }
