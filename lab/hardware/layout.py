# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the emulated tree goes in a host's /sys and /dev, and the plain links around it."""
from __future__ import annotations

from pathlib import Path

from lab.hardware.spec import NodeSpec


def binds(spec: NodeSpec) -> list[tuple[str, str]]:
    """(path in the emulated tree, path in the host: below /sys, or absolute)."""
    roots = sorted({f"devices/{rail.pci_root}" for rail in spec.rails})
    return [("net", "class/net"), ("dev", "/dev/infiniband"), *((root, root) for root in roots)]


def links(spec: NodeSpec) -> list[tuple[str, str]]:
    """(link below /sys, its target), as the kernel's own: class/infiniband/mlx5_0 and the like."""
    made = []
    for rail in spec.rails:
        made += [
            (f"class/infiniband/{rail.rdma}", f"../../{rail.pci_path}/infiniband/{rail.rdma}"),
            (f"bus/pci/devices/{rail.pci}", f"../../../{rail.pci_path}"),
            (f"bus/pci/drivers/mlx5_core/{rail.pci}", f"../../../../{rail.pci_path}"),
        ]
    return made


def make_links(spec: NodeSpec, sys: Path) -> None:
    for name, target in links(spec):
        (sys / name).parent.mkdir(parents=True, exist_ok=True)
        (sys / name).symlink_to(target)
