# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the hosts' kernel on their disks, as a distribution's kernel package leaves them.

The kernel is the machine's; its release names the folder. The files are ELF objects with the texts that modinfo reads
and nothing to load, indexed by the image's own depmod, so that the image's own modinfo answers.
"""
from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

NAME = "kernel"
KO = Path(__file__).parent / "repository/packages/dkms/usr/libexec/aidc-lab/ko.py"
# Of the RDMA stack [Linux, the folders of its source].
MODULES = {
    "mlx5_core": "drivers/net/ethernet/mellanox/mlx5/core", "mlx5_ib": "drivers/infiniband/hw/mlx5",
    **{name: "drivers/infiniband/core" for name in ("ib_core", "ib_cm", "iw_cm", "ib_uverbs", "rdma_cm", "rdma_ucm")},
}


def srcversion(*parts: str) -> str:
    """23 hexadecimal digits, as modpost makes of the sources."""
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:23].upper()


def fields(name: str, release: str) -> list[str]:
    """The kernel's own driver: in its tree, without a version (host-setup 2.3)."""
    return ["license=Dual BSD/GPL", f"srcversion={srcversion('inbox', name, release)}", "intree=Y", f"name={name}",
            f"vermagic={release} SMP preempt mod_unload modversions"]


def body() -> str:
    """What a layer runs. ``build`` is where the headers' package puts them; without it DKMS builds nothing."""
    release = os.uname().release
    folder = f"/usr/lib/modules/{release}"
    lines = [f"mkdir -p \"$root{folder}/build\"", f"cat >\"$root{folder}/ko.py\" <<'END_OF_KO'",
             KO.read_text(encoding="utf-8") + "END_OF_KO"]
    for name, place in MODULES.items():
        words = ["python3", f"{folder}/ko.py", f"{folder}/kernel/{place}/{name}.ko", *fields(name, release)]
        lines.append(f"inside {shlex.join(words)}")
    return "\n".join([*lines, f"rm \"$root{folder}/ko.py\"", f"touch \"$root{folder}/modules.order\" "
                      f"\"$root{folder}/modules.builtin\"", f"inside depmod {release}", ""])
