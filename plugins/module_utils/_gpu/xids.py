# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Xids and what to do about them: data only, a source per row; `xid_history` evaluates it.

Actions: ``facts`` is the project's reference on drivers (driver-slurm-k8s 1.9, which follows gpud's table made from
NVIDIA's catalogue). Meanings: the Xid listing of docs.nvidia.com/deploy/xid-errors, as gpud quotes it.
"""
from __future__ import annotations

import typing as t

DATED = "2026-11"

# restart: the application's matter; reset: drain the node, reset the GPU; reboot: power cycle; hardware: board, power
# or cabling; detail: belongs to another one; note: nothing to do.
Action = t.Literal["restart", "reset", "reboot", "hardware", "detail", "note"]


class Xid(t.NamedTuple):
    number: int
    action: Action
    meaning: str
    source: str


_FACTS = "facts 1.9"

XIDS: tuple[Xid, ...] = (
    Xid(13, "restart", "graphics engine exception", _FACTS),
    Xid(31, "restart", "GPU memory page fault", "facts 1.9; with 64K pages and R590 or newer see facts 0.5"),
    Xid(32, "restart", "invalid or corrupted push buffer stream", _FACTS),
    Xid(43, "restart", "GPU stopped processing", _FACTS),
    Xid(45, "restart", "preemptive cleanup after earlier errors", _FACTS),
    Xid(46, "reset", "GPU stopped processing", _FACTS),
    Xid(48, "reset", "double bit ECC error", _FACTS),
    Xid(54, "hardware", "auxiliary power is not connected", _FACTS),
    Xid(62, "reset", "internal micro-controller halt", _FACTS),
    Xid(63, "note", "row remapping recorded", _FACTS),
    Xid(64, "reset", "row remapping could not be recorded", _FACTS),
    Xid(68, "restart", "video decoder exception", _FACTS),
    Xid(69, "restart", "graphics engine class error", _FACTS),
    Xid(74, "hardware", "NVLink error", _FACTS),
    Xid(79, "reboot", "GPU has fallen off the bus", _FACTS),
    Xid(92, "note", "high rate of single bit ECC errors", _FACTS),
    Xid(94, "restart", "contained ECC error", _FACTS),
    Xid(95, "reset", "uncontained ECC error", _FACTS),
    Xid(109, "reset", "context switch timeout", _FACTS),
    Xid(110, "reset", "security fault", _FACTS),
    Xid(119, "reset", "GSP RPC timeout", "facts 1.9; sample dmesg_xid-1"),
    Xid(120, "reset", "GSP error", _FACTS),
    Xid(121, "note", "C2C link error", _FACTS),
    Xid(136, "reset", "no text in the listing", _FACTS),
    Xid(137, "note", "NVLink FLA privilege error", _FACTS),
    Xid(140, "reset", "unrecovered ECC error", _FACTS),
    Xid(143, "reset", "GPU initialisation failure", _FACTS),
    Xid(144, "hardware", "NVLink: SAW error", _FACTS),
    Xid(145, "hardware", "NVLink: RLW error", _FACTS),
    Xid(146, "hardware", "NVLink: TLW error", _FACTS),
    Xid(147, "hardware", "NVLink: TREX error", _FACTS),
    Xid(148, "hardware", "NVLink: NVLPW_CTRL error", _FACTS),
    Xid(149, "hardware", "NVLink: NETIR error", _FACTS),
    Xid(150, "hardware", "NVLink: MSE error", _FACTS),
    # Its text names the action; see xid_history.recovery_action.
    Xid(154, "note", "GPU recovery action changed", "facts 1.9: read the action"),
    Xid(155, "reset", "NVLink: error defined by software", _FACTS),
    Xid(156, "reset", "resource retirement event", _FACTS),
    Xid(158, "reset", "GPU fatal timeout", _FACTS),
    Xid(159, "detail", "CHI non-data error, of the driver or UVM", _FACTS),
    Xid(160, "note", "channel retirement event", _FACTS),
    Xid(161, "note", "channel retirement failure", _FACTS),
    Xid(162, "detail", "power smoothing hardware engaged again", _FACTS),
    Xid(163, "detail", "power smoothing hardware disengaged", _FACTS),
    Xid(164, "detail", "power smoothing hardware: low lifetime", _FACTS),
    Xid(165, "detail", "power smoothing hardware: lifetime exhausted", _FACTS),
    Xid(167, "hardware", "PCIe fatal timeout", _FACTS),
    Xid(171, "detail", "beside Xid 48: DRAM", "facts 1.9 (with 48); NVIDIA's catalogue: UNCORRECTABLE_DRAM_ERROR"),
    Xid(172, "detail", "beside Xid 48: SRAM", "facts 1.9 (with 48); NVIDIA's catalogue: UNCORRECTABLE_SRAM_ERROR"),
)

# What an operator does; "" is no matter of the node's.
HINTS: dict[Action, str] = {
    "restart": "",
    "reset": "drain the node and reset the GPU",
    "reboot": "drain the node and power it off and on",
    "hardware": "drain the node; check power, board and cabling",
    "detail": "",
    "note": "",
}


def xid(number: int) -> Xid | None:
    return next((one for one in XIDS if one.number == number), None)
