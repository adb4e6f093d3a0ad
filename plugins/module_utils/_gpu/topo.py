# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which NIC is near which GPU: by the PCI tree of sysfs; ``nvidia-smi topo -m`` is only a check. Pure."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from .model import Nic, Pci
from .tables import BoardKind

Path = t.Literal["PIX", "PXB", "PHB", "NODE", "SYS"]
# Best first [mlx5-roce.md 6.3].
_ORDER: tuple[Path, ...] = ("PIX", "PXB", "PHB", "NODE", "SYS")
_SWITCHED = ("PIX", "PXB")
_CELL = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|NV\d+|C2C")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Headings may run together: NIC11NIC12, NIC11CPU Affinity [mlx5-roce.md 6.3]. "GPU NUMA ID" has no number.
_HEADING = re.compile(r"GPU\d+|NIC\d+|mlx5_(?:bond_)?\d+|roce[pPx][0-9a-fpPsfd]+?(?=\s|$|NIC|mlx5|CPU|GPU)")
_LEGEND = re.compile(r"\s*(NIC\d+): (\S+)\s*$")
_GPU = re.compile(r"GPU\d+")


def path(gpu: Pci, nic: Nic) -> Path | None:
    """How far they are apart, in nvidia-smi's words; None where the firmware names no NUMA node.

    PIX: at most one bridge on the way; PXB: more, below one root port; PHB: through the host bridge; NODE: two host
    bridges of one NUMA node; SYS: two NUMA nodes [nvidia-smi topo -m, legend].
    """
    if gpu.path and nic.path and gpu.path[0] == nic.path[0]:
        shared = 0
        for one, other in zip(gpu.path, nic.path):
            if one != other:
                break
            shared += 1
        if shared == 1:
            return "PHB"
        # The ports of one switch are one bridge to nvidia-smi: one port of it on each side of what is shared.
        return "PIX" if max(len(gpu.path), len(nic.path)) - shared <= 1 else "PXB"
    if gpu.numa_node is None or nic.numa_node is None:
        return None
    return "NODE" if gpu.numa_node == nic.numa_node else "SYS"


@dataclass(frozen=True)
class Affinity:
    """NICs of one GPU, ``paths`` by PCI address; ``nearest`` may be shared with another GPU."""

    gpu: str
    paths: dict[str, Path | None] = field(default_factory=dict)
    nearest: str | None = None


def _by_tree(gpu: Pci, nic: Nic) -> int | None:
    way = path(gpu, nic)
    return None if way is None else _ORDER.index(way)


def _by_node(gpu: Pci, nic: Nic) -> int | None:
    """On GB200 GPUs and NICs hang on ports of their own everywhere: the NUMA node is all that tells."""
    if gpu.numa_node is None or nic.numa_node is None:
        return None
    return 0 if gpu.numa_node == nic.numa_node else 1


def pair(gpus: t.Sequence[Pci], nics: t.Sequence[Nic], kinds: t.Mapping[str, BoardKind | None]) -> list[Affinity]:
    """For each GPU the nearest NIC; of equals the one that fewer GPUs have, then the first [mlx5-roce.md 6.3]."""
    used: dict[str, int] = {}
    found = []
    ordered = sorted(nics, key=lambda nic: (nic.rail is None, nic.rail or 0, nic.pci))
    for gpu in sorted(gpus, key=lambda one: one.pci):
        rank = _by_node if kinds.get(gpu.pci) == "nvl" else _by_tree
        ranked = [(distance, used.get(nic.pci, 0), place, nic.pci) for place, nic in enumerate(ordered)
                  if (distance := rank(gpu, nic)) is not None]
        nearest = min(ranked)[3] if ranked else None
        if nearest:
            used[nearest] = used.get(nearest, 0) + 1
        found.append(Affinity(gpu.pci, {nic.pci: path(gpu, nic) for nic in ordered}, nearest))
    return found


def _columns(heading: str) -> list[str]:
    return _HEADING.findall(heading)


def matrix(text: str) -> list[dict[str, str]]:
    """One dict for each GPU's row: the cell by RDMA device. Raises ValueError for what is no matrix.

    Blanks or tabs, underlined headings, headings that run together, empty affinity cells. The heading is believed
    only where it counts as many devices as the rows have cells.
    """
    lines = [_ESCAPE.sub("", line).rstrip() for line in text.splitlines()]
    heading = next((line for line in lines if _GPU.search(line)), "")
    columns = _columns(heading)
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.match(line))}
    found = []
    for line in lines[lines.index(heading) + 1:] if columns else []:
        words = line.split()
        if not words or not _GPU.fullmatch(words[0]):
            continue
        cells = []
        for word in words[1:]:
            if not _CELL.fullmatch(word):
                break
            cells.append(word)
        if len(cells) != len(columns):
            raise ValueError(f"{len(cells)} cells for {words[0]} under {len(columns)} headings")
        found.append({legend.get(name, name): cell for name, cell in zip(columns, cells)
                      if not _GPU.fullmatch(name)})
    if not found:
        raise ValueError("no row of a GPU")
    return found


def disagreements(
    rows: t.Sequence[t.Mapping[str, str]], order: t.Sequence[str], affinities: t.Sequence[Affinity],
    nics: t.Sequence[Nic],
) -> list[Problem]:
    """Where one sees a PCIe switch between GPU and NIC and the other does not. ``order``: GPUs as nvidia-smi has them.

    PHB, NODE and SYS are not compared: a virtual machine's are its own, and on GB200 they say nothing.
    """
    ours = {one.gpu: one.paths for one in affinities}
    found = []
    for gpu, row in zip(order, rows):
        for nic in nics:
            theirs, mine = row.get(nic.rdma_device or ""), ours.get(gpu, {}).get(nic.pci)
            if theirs in _ORDER and mine is not None and (theirs in _SWITCHED) != (mine in _SWITCHED):
                found.append(Problem(f"path of GPU {gpu} and NIC {nic.pci}", f"{theirs} from nvidia-smi topo",
                                     f"{mine}, as the PCI tree has it",
                                     "NCCL reads the PCI tree; is this a virtual machine with a topology file?"))
    return found
