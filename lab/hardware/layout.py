# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the launcher puts the emulated hardware in a host: pure functions of the specification.

Every path in the answers is relative to the host's root directory (``sys/...``, ``dev/...``).
All of it is binds of the FUSE tree; classes and the PCI bus are links there (simulation.md 0b.3). A link or a file that
the launcher made would stay when its device vanishes.
The machine's own devices/pci*, bus/pci and class/infiniband* stay out.
"""
from __future__ import annotations

import posixpath

from lab.hardware.spec import NodeSpec


def binds(spec: NodeSpec) -> list[tuple[str, str]]:
    """(path in the FUSE root, path below the host's root to bind it on); all are directories."""
    roots = sorted({function.root for function in spec.functions})
    return [
        ("net", "sys/class/net"),
        ("virtual_net", "sys/devices/virtual/net"),
        ("infiniband", "sys/class/infiniband"),
        ("infiniband_verbs", "sys/class/infiniband_verbs"),
        ("pci", "sys/bus/pci"),
        *((f"devices/{root}", f"sys/devices/{root}") for root in roots),
        ("dev", "dev/infiniband"),
        ("dcbnl", "dev/dcbnl"),
        ("lab", "dev/aidc-lab"),
        ("configfs", "sys/kernel/config/rdma_cm"),
        ("debugfs", "sys/kernel/debug"),
        ("module", "sys/module"),
        ("proc_driver", "proc/driver"),
    ]


# Of these, what is the machine's own passes through: it must not be written.
READ_ONLY = ("sys/module", "proc/driver")
# Files to cover where the machine's kernel has them: one without loadable modules has no /proc/modules.
COVERED = (("modules", "proc/modules"),)


def directories(spec: NodeSpec) -> list[str]:
    """Directories to create, parents first: the mount points."""
    wanted = {target for _source, target in binds(spec)}
    parents = set(wanted)
    for path in wanted:
        while (path := posixpath.dirname(path)):
            parents.add(path)
    return sorted(parents, key=lambda path: (path.count("/"), path))
