# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware parameters of the emulated NICs as data, and the file in a host through which mstconfig reaches them.

Names, values and rules: mlx5-roce 5.1. Defaults: samples mlxconfig-1, -2, -6 and mlx5-roce 5.1; those that no fact
gives are marked. Numbers without a range in the facts take 16 bits.
"""
from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.hardware.nodes import Attr, fail
from lab.hardware.spec import RailSpec

# The lab's own name: no kernel has this file.
FILE = "aidc_lab_nvconfig"
BITS_16 = 0xFFFF


@dataclass(frozen=True)
class Parameter:
    """``names`` of an enum by number; a number has ``highest``. ``gate``: hidden until that one is on and loaded."""

    default: int = 0
    names: tuple[str, ...] = ()
    lowest: int = 0
    highest: int = BITS_16
    gate: str = ""
    vpi_only: bool = False
    bluefield_only: bool = False

    def takes(self, value: int) -> bool:
        return self.lowest <= value <= (len(self.names) + self.lowest - 1 if self.names else self.highest)

    def range(self) -> str:
        if self.names:
            return f"one of {', '.join(str(self.lowest + place) for place in range(len(self.names)))}"
        return f"{self.lowest} to {self.highest}"


def _bool(default: int = 0) -> Parameter:
    return Parameter(default, ("False", "True"))


_LLDP_MODE = Parameter(0, ("OFF", "MANDATORY", "ALL"))
PARAMETERS: dict[str, Parameter] = {
    "LINK_TYPE_P1": Parameter(1, ("IB", "ETH"), lowest=1, vpi_only=True),
    "SRIOV_EN": _bool(),
    "NUM_OF_VFS": Parameter(),
    "ADVANCED_PCI_SETTINGS": _bool(),  # default: no fact
    "MAX_ACC_OUT_READ": Parameter(gate="ADVANCED_PCI_SETTINGS"),
    "PCI_WR_ORDERING": Parameter(0, ("per_mkey", "force_relax"), gate="ADVANCED_PCI_SETTINGS"),
    "ATS_ENABLED": _bool(),  # default: no fact
    "ROCE_CONTROL": Parameter(0, ("DEVICE_DEFAULT", "ROCE_DISABLE", "ROCE_ENABLE")),
    "ROCE_CC_PRIO_MASK_P1": Parameter(255, highest=255),
    "CNP_DSCP_P1": Parameter(48, highest=63),
    "CNP_802P_PRIO_P1": Parameter(6, highest=7),
    "ROCE_ADAPTIVE_ROUTING_EN": _bool(),  # default: no fact
    "RDMA_SELECTIVE_REPEAT_EN": _bool(),  # default: no fact
    "TX_SCHEDULER_LOCALITY_MODE": Parameter(0, ("DEVICE_DEFAULT", "STATIC_MODE", "ACCUMULATIVE", "DISABLED")),
    "MULTIPATH_DSCP": Parameter(0, ("DEVICE_DEFAULT", "DISABLE", "DSCP_0", "DSCP_1", "DSCP_2")),
    "ROCE_CC_LEGACY_DCQCN": _bool(1),  # default: no fact
    "USER_PROGRAMMABLE_CC": _bool(),
    "LLDP_NB_DCBX_P1": _bool(),
    "LLDP_NB_RX_MODE_P1": _LLDP_MODE,
    "LLDP_NB_TX_MODE_P1": _LLDP_MODE,
    "INTERNAL_CPU_MODEL": Parameter(1, ("SEPARATED_HOST", "EMBEDDED_CPU"), bluefield_only=True),
    "INTERNAL_CPU_OFFLOAD_ENGINE": Parameter(0, ("ENABLED", "DISABLED"), bluefield_only=True),
    "KEEP_ETH_LINK_UP_P1": _bool(1),
    "KEEP_LINK_UP_ON_BOOT_P1": _bool(),
    **{f"HOST_CHAINING_DESCRIPTORS[{index}]": Parameter() for index in range(8)},
}
IB = 1
Values = Mapping[str, int]


def broken_rule(following: Values) -> str:
    """Rules between next-boot values, checked when they are set (mlx5-roce 5.1, 5.3); empty if all hold."""
    if following["USER_PROGRAMMABLE_CC"] and following["ROCE_CC_LEGACY_DCQCN"]:
        return "USER_PROGRAMMABLE_CC is valid only with ROCE_CC_LEGACY_DCQCN False"
    if following["LLDP_NB_DCBX_P1"] and (following["LLDP_NB_RX_MODE_P1"], following["LLDP_NB_TX_MODE_P1"]) != (2, 2):
        return "LLDP_NB_DCBX_P1 needs LLDP_NB_RX_MODE_P1 and LLDP_NB_TX_MODE_P1 ALL"
    return ""


class Card:
    """Parameters of one card: what is delivered, what runs, what the next boot takes. ``state.State`` keeps them."""

    def __init__(self, rail: RailSpec, current: dict[str, str], following: dict[str, str]) -> None:
        self.rail = rail
        self.loaded = current
        self.written = following

    def current(self, name: str) -> int:
        return int(self.loaded.get(name, self.rail.delivered.get(name, PARAMETERS[name].default)))

    def next(self, name: str) -> int:
        return int(self.written.get(name, self.current(name)))

    def present(self, name: str) -> bool:
        """LINK_TYPE only on VPI cards, INTERNAL_CPU only on BlueField; gated ones only while their gate is loaded; and
        no name that the firmware does not know (mlx5-roce 5.1)."""
        parameter = PARAMETERS[name]
        on_card = (self.rail.vpi or not parameter.vpi_only) and (self.rail.bluefield or not parameter.bluefield_only)
        return on_card and name not in self.rail.firmware_lacks and (
            not parameter.gate or self.current(parameter.gate) == 1)

    def show(self) -> dict[str, dict[str, Any]]:
        """What the firmware and the tool's own list say, for the tool."""
        return {name: {"default": parameter.default, "current": self.current(name), "next": self.next(name),
                       "names": {str(parameter.lowest + place): text for place, text in enumerate(parameter.names)},
                       "present": self.present(name)} for name, parameter in PARAMETERS.items()}

    def refusal(self, values: Values) -> str:
        """Why the firmware does not take these next-boot values; empty if it does."""
        for name, value in values.items():
            if name not in PARAMETERS or not self.present(name):
                return f"{name} is not there"
            if not PARAMETERS[name].takes(value):
                return f"{name}: wanted {PARAMETERS[name].range()}"
        return broken_rule({name: values.get(name, self.next(name)) for name in PARAMETERS})


def door(values: Card, save: Callable[[], None], privileged: Callable[[], bool]) -> Attr:
    """The file: a read is everything as JSON, a write of {"NAME": number} sets next-boot values, all or none."""
    def show() -> str:
        if not privileged():
            raise fail(errno.EACCES)
        rail = values.rail
        return json.dumps({"type": rail.card_type, "name": rail.card_name, "description": rail.card_description,
                           "parameters": values.show()})

    def store(text: str) -> None:
        if not privileged():
            raise fail(errno.EACCES)
        try:
            wanted = {str(name): int(value) for name, value in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError):
            raise fail(errno.EINVAL) from None
        if values.refusal(wanted):
            raise fail(errno.EINVAL)
        values.written.update({name: str(value) for name, value in wanted.items()})
        save()

    return Attr(show, store, permissions=0o600)
