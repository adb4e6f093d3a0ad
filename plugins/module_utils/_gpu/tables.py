# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What NVIDIA's boards, helpers and clock events are: data only, a source per row.

``facts`` is the project's reference on drivers (driver-slurm-k8s), read in November 2026.
"""
from __future__ import annotations

import typing as t

DATED = "2026-11"

# nvl: GPUs behind NVSwitch trays of a rack (NVL72); nvswitch: a board with NVSwitches of its own (HGX); pcie: cards.
BoardKind = t.Literal["nvl", "nvswitch", "pcie"]
BOARD_KINDS: tuple[BoardKind, ...] = ("nvl", "nvswitch", "pcie")
Flavour = t.Literal["open", "proprietary"]


class Board(t.NamedTuple):
    """``flavour`` None: both kernel modules drive it; ``nvlinks`` None: the facts name no number."""

    pci_id: str
    kind: BoardKind
    flavour: Flavour | None
    nvlinks: int | None
    source: str


BOARDS: tuple[Board, ...] = (
    Board("10de:2941", "nvl", "open", 18, "facts 1.1 (id, open only), 6.1 (GB200, 18 links)"),
    Board("10de:31c2", "nvl", "open", None, "facts 1.1 (GB300; Blackwell is open only)"),
    Board("10de:2901", "nvswitch", "open", None, "facts 1.1 (B200, open only), 1.7 (NVLink5 HGX)"),
    Board("10de:2330", "nvswitch", None, None, "facts 1.1 (H100 SXM); sample of an HGX board: State and Status only"),
    Board("10de:26b9", "pcie", None, 0, "facts 1.1, 6.3 (L40S: no NVLink, no MIG, both modules)"),
)


class Helper(t.NamedTuple):
    """A package that belongs to one driver version. ``name`` is what it begins with, a branch may follow."""

    name: str
    what: str
    source: str


HELPERS: tuple[Helper, ...] = (
    Helper("nvidia-fabricmanager", "fabric manager", "facts 0.2, 1.7: the exact driver version"),
    Helper("nvidia-imex", "IMEX", "facts 0.2, 1.8: package version = driver version"),
    Helper("libnvidia-nscq", "NSCQ library", "facts 0.2, 1.2"),
)
# Told, not judged: facts 0.2 does not count it among the four, and Debian versions it by itself.
PERSISTENCED = "nvidia-persistenced"

FABRIC_MANAGER_UNIT = "nvidia-fabricmanager.service"
UNITS = (FABRIC_MANAGER_UNIT, "nvidia-imex.service", "nvidia-persistenced.service")


class Event(t.NamedTuple):
    """A reason for a lower clock, as ``nvidia-smi -q`` names it. ``normal``: what a healthy GPU says too."""

    name: str
    bit: int
    normal: bool
    hint: str


# facts 8: "Idle and power cap under full load are normal; 0x20/0x40/0x80 are not". HW Slowdown stands above both 0x40
# and 0x80, which say which one it is.
EVENTS: tuple[Event, ...] = (
    Event("Idle", 0x1, True, ""),
    Event("Applications Clocks Setting", 0x2, True, ""),
    Event("SW Power Cap", 0x4, True, ""),
    Event("HW Slowdown", 0x8, True, ""),
    Event("Sync Boost", 0x10, True, ""),
    Event("SW Thermal Slowdown", 0x20, False, "the GPU is too hot; look at cooling, compare with its neighbours"),
    Event("HW Thermal Slowdown", 0x40, False, "the GPU is far too hot; drain the node and look at cooling"),
    Event("HW Power Brake Slowdown", 0x80, False, "the power supply asked for less; look at the PSUs and the BMC"),
    Event("Display Clock Setting", 0x100, True, ""),
)

# Degrees left [facts 8: "warn at margin <= 10, act at <= 3"].
MARGIN_WARN_C, MARGIN_ACT_C = 10, 3
# facts 2.4: 256 MiB is what a GPU has without resizable BAR; RDMA registers memory through it.
SMALL_BAR1_MIB = 256
# Exit status of nvidia-smi [facts 1.4], read before any text: what it says, and what to do.
EXIT_STATES: dict[int, tuple[str, str]] = {
    6: ("no devices were found", "the driver drives no GPU; look at dmesg for NVRM lines"),
    9: ("the driver does not answer", "the module nvidia is not loaded, or of another kernel; look at dmesg"),
    15: ("a GPU has fallen off the bus", "drain the node and power it off and on; a warm reboot may not do"),
    18: ("driver and library have different versions",
         "an update replaced one of them; reload the driver or reboot"),
}
# The same in words, for a tool that prints its error and exits 0 [facts 0.20; sample nvidia-smi_error].
ERROR_TEXTS: tuple[tuple[str, int], ...] = (
    ("Driver/library version mismatch", 18),
    ("couldn't communicate with the NVIDIA driver", 9),
    ("No devices were found", 6),
    ("GPU is lost", 15),
    ("fallen off the bus", 15),
)


def board(pci_id: str) -> Board | None:
    return next((one for one in BOARDS if one.pci_id == pci_id), None)


def helper(package: str) -> Helper | None:
    """``nvidia-imex`` and ``nvidia-imex-570`` are the same; ``nvidia-imex-tools`` would not be."""
    for one in HELPERS:
        rest = package[len(one.name):]
        if package.startswith(one.name) and (not rest or rest[1:].isdigit()):
            return one
    return None
