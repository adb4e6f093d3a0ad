# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Names of PCI devices by number: pci.ids of the distributions lacks new ones (Debian 12: 2941, 26b9)."""
from __future__ import annotations

import typing as t

NVIDIA, MELLANOX = "0x10de", "0x15b3"
# Base class and subclass of a display controller: VGA, and 3D without an output [pci.ids, class 03].
GPU_CLASSES = ("0x0300", "0x0302")

NicKind = t.Literal["connectx", "bluefield", "virtual", "flash_recovery", "other"]

# Ids of GPUs [README of NVIDIA/open-gpu-kernel-modules 595.45.04, table of compatible GPUs].
GPU_NAMES: dict[str, str] = {
    "10de:2941": "GB200", "10de:31c2": "GB300", "10de:2901": "B200", "10de:3182": "B300", "10de:2330": "H100 SXM",
    "10de:2331": "H100 PCIe", "10de:2335": "H200", "10de:233b": "H200 NVL", "10de:2342": "GH200", "10de:2348": "GH200",
    "10de:26b9": "L40S", "10de:26b5": "L40", "10de:27b8": "L4", "10de:2e12": "GB10",
}
# Ids of network functions [Linux drivers/net/ethernet/mellanox/mlx5/core/main.c, mlx5_core_pci_table; pci.ids].
_CONNECTX: dict[str, str] = {
    "15b3:1017": "ConnectX-5", "15b3:1019": "ConnectX-5 Ex", "15b3:101b": "ConnectX-6", "15b3:101d": "ConnectX-6 Dx",
    "15b3:101f": "ConnectX-6 Lx", "15b3:1021": "ConnectX-7", "15b3:1023": "ConnectX-8", "15b3:1025": "ConnectX-9",
}
_BLUEFIELD: dict[str, str] = {
    "15b3:a2d2": "BlueField", "15b3:a2d6": "BlueField-2", "15b3:a2dc": "BlueField-3", "15b3:a2df": "BlueField-4",
}
_VIRTUAL: dict[str, str] = {
    "15b3:1018": "ConnectX-5 VF", "15b3:101a": "ConnectX-5 Ex VF", "15b3:101c": "ConnectX-6 VF",
    "15b3:101e": "ConnectX VF", "15b3:a2d3": "BlueField VF",
}
# A card whose firmware does not start shows one of these instead of its own id [pci.ids: "Flash Recovery"].
_FLASH_RECOVERY = "15b3:02"


def gpu_name(pci_id: str) -> str | None:
    """None for a GPU that the table does not have; its id says enough."""
    return GPU_NAMES.get(pci_id)


def nic_kind(pci_id: str, is_vf: bool = False) -> NicKind:
    if pci_id.startswith(_FLASH_RECOVERY):
        return "flash_recovery"
    if is_vf or pci_id in _VIRTUAL:
        return "virtual"
    if pci_id in _BLUEFIELD:
        return "bluefield"
    return "connectx" if pci_id in _CONNECTX else "other"


def nic_name(pci_id: str) -> str | None:
    if pci_id.startswith(_FLASH_RECOVERY):
        return "card in flash recovery"
    return {**_CONNECTX, **_BLUEFIELD, **_VIRTUAL}.get(pci_id)
