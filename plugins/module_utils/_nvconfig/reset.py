# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""How pending next-boot values get loaded on this platform. Pure.

Facts: boards whose NIC is powered by the BMC (DGX, HGX B200/B300, GB200) keep it powered through a reboot of the
operating system, which then loads nothing; the firmware reset comes first [network-operator-docs
nic-conf-operator/nic-fw-configuration.rst; Mellanox/nic-configuration-operator#188, #189]. Level 3 of the reset is
"Driver restart and PCI reset" [mstflint small_utils/mstfwreset.py].
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

LEVEL = 3


@dataclass(frozen=True)
class Means:
    """``order`` has firmware_reset, reboot or power_cycle; ``command`` is the argv of the reset, never run by us."""

    order: tuple[str, ...]
    reason: str
    command: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        return {"reset_required": bool(self.order), "reboot_required": "reboot" in self.order,
                "power_cycle_required": "power_cycle" in self.order, "order": list(self.order),
                "reason": self.reason, "reset_command": list(self.command)}


def tool_of(config_tool: str) -> str:
    """The reset tool that comes with the configuration tool."""
    return config_tool.replace("config", "fwreset")


def means(tool: str, pci: str, bmc_powered: bool | None, levels: frozenset[int] | None, *,
          rebooted: bool = False, told_power_cycle: bool = False) -> Means:
    """``rebooted``: a reboot since the write did not load the values. ``told_power_cycle``: `set` said so."""
    reset = tool_of(tool)
    unable = (f"{reset} does not tell which resets are supported" if levels is None
              else f"{reset} does not support level {LEVEL} here")
    past = "A reboot since they were written did not load them. " if rebooted else ""
    if told_power_cycle:
        return Means(("power_cycle",), f"{past}Power cycle the node: {tool} said so")
    if levels is not None and LEVEL in levels:
        command = (reset, "-d", pci, "-l", str(LEVEL), "-y", "reset")
        end = "; a reboot of the node loads them too" if bmc_powered is False and not rebooted else ""
        if bmc_powered:
            end = "; a reboot alone does not load them, as this board keeps the NIC's power"
        return Means(("firmware_reset",), f"{past}Reset the firmware of the idle card: {' '.join(command)} (its driver "
                     f"restarts, so set ports and QoS again){end}", command)
    if rebooted:
        return Means(("power_cycle",), f"{past}Power cycle the node: {unable}")
    if bmc_powered:
        return Means(("power_cycle",), "Power cycle the node: its board keeps the NIC's power through a reboot, "
                     f"and {unable}")
    end = "" if bmc_powered is False else "; if they are still pending after it, power cycle the node"
    return Means(("reboot",), f"Reboot the node: {unable}{end}")
