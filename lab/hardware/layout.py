# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the launcher puts the emulated hardware in a host: pure functions of the specification.

Every path in the answers is relative to the host's root directory (``sys/...``, ``dev/...``).
Only what needs behaviour is a bind of the FUSE tree; classes and the PCI bus are plain links
(simulation.md 0b.3). The machine's own devices/pci*, bus/pci and class/infiniband* stay out.
"""
from __future__ import annotations

import posixpath

from lab.hardware.spec import NodeSpec, RailSpec

DRIVER = "sys/bus/pci/drivers/mlx5_core"


def binds(spec: NodeSpec) -> list[tuple[str, str]]:
    """(path in the FUSE root, path below the host's root to bind it on); all are directories."""
    roots = sorted({rail.root for rail in spec.rails})
    return [
        ("net", "sys/class/net"),
        *((f"devices/{root}", f"sys/devices/{root}") for root in roots),
        ("dev", "dev/infiniband"),
    ]


def directories(spec: NodeSpec) -> list[str]:
    """Directories to create, parents first: mount points and the ones that hold links."""
    wanted = {"sys/class/infiniband", "sys/class/infiniband_verbs", "sys/bus/pci/devices", DRIVER}
    wanted |= {target for _source, target in binds(spec)}
    parents = set(wanted)
    for path in wanted:
        while (path := posixpath.dirname(path)):
            parents.add(path)
    return sorted(parents, key=lambda path: (path.count("/"), path))


def files(spec: NodeSpec) -> list[tuple[str, str]]:
    """(path, content) of plain read-only files to create (libibverbs reads the ABI version)."""
    return [("sys/class/infiniband_verbs/abi_version", "6\n")]


def _link(path: str, target: str) -> tuple[str, str]:
    """A link at ``path`` to ``target``, relative as the kernel makes them."""
    return path, posixpath.relpath(target, posixpath.dirname(path))


def _rail_links(rail: RailSpec) -> list[tuple[str, str]]:
    function = f"sys/{rail.pci_dir}"
    return [
        _link(f"sys/class/infiniband/{rail.rdma}", f"{function}/infiniband/{rail.rdma}"),
        _link(f"sys/class/infiniband_verbs/{rail.uverbs}", f"{function}/infiniband_verbs/{rail.uverbs}"),
        _link(f"sys/bus/pci/devices/{rail.pci}", function),
        _link(f"sys/bus/pci/devices/{rail.bridge}", posixpath.dirname(function)),
        _link(f"{DRIVER}/{rail.pci}", function),
    ]


def links(spec: NodeSpec) -> list[tuple[str, str]]:
    """(path of a symbolic link to create, its relative target); after ``directories``, before or after the binds."""
    return [link for rail in spec.rails for link in _rail_links(rail)]
