# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What mlx5_info adds to devices and ports: roles, relations, PCIe against the class. Pure."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .._host.errors import Problem
from .model import Device

_SPEED = re.compile(r"(\d+(?:\.\d+)?) GT/s")
# phys_port_name as devlink makes it: the uplink, and representors of VFs and sub-functions, with a controller in
# front on a DPU [Linux net/devlink/port.c, __devlink_port_phys_port_name_get].
_KINDS = ((re.compile(r"p\d+(?:s\d+)?"), "uplink"), (re.compile(r"(?:c\d+)?pf\d+vf\d+"), "vf_representor"),
          (re.compile(r"(?:c\d+)?pf\d+sf\d+"), "sf_representor"), (re.compile(r"(?:c\d+)?pf\d+"), "pf_representor"))
_MANAGEMENT = ("carries the default route", "carries the SSH connection")

Role = t.Literal["rail", "management", "excluded", "unused"]


@dataclass(frozen=True)
class NodeClass:
    """What the class of the node says of its rails' PCIe links."""

    pcie_speed_gts: float | None = None
    pcie_width: int | None = None


def role(rail: int | None, excluded: str | None) -> Role:
    """What a port is for. A rail stays one when it carries something else; ``excluded`` then says what."""
    if rail is not None:
        return "rail"
    if excluded is None:
        return "unused"
    return "management" if any(text in excluded for text in _MANAGEMENT) else "excluded"


def netdev_kind(phys_port_name: str, alone: bool) -> str:
    """``uplink``, a representor, or ``other``; a function's only netdev is its uplink, whatever its name."""
    for pattern, kind in _KINDS:
        if pattern.fullmatch(phys_port_name):
            return kind
    return "uplink" if alone else "other"


def speed_gts(text: str) -> float | None:
    """``32.0 GT/s PCIe`` or ``8 GT/s``; None for ``Unknown``."""
    match = _SPEED.match(text)
    return float(match.group(1)) if match else None


def width(text: str) -> int | None:
    """0 and 255 stand for a link that is down or not read."""
    return int(text) if text.isdigit() and 0 < int(text) < 255 else None


def _link(speed: float | None, lanes: int | None) -> str:
    return f"{f'{speed:g} GT/s' if speed else 'unknown speed'} x{lanes or '?'}"


def pcie_finding(pci: str, link: t.Mapping[str, t.Any], wanted: NodeClass) -> Problem | None:
    """A link below what the class says. What is unknown is a finding as well: it was asked for."""
    speed, lanes = link.get("current_speed_gts"), link.get("current_width")
    slow = wanted.pcie_speed_gts is not None and (speed is None or speed < wanted.pcie_speed_gts)
    narrow = wanted.pcie_width is not None and (lanes is None or lanes < wanted.pcie_width)
    if not slow and not narrow:
        return None
    able = _link(link.get("max_speed_gts"), link.get("max_width"))
    return Problem(f"PCIe link of {pci}", _link(speed, lanes),
                   f"at least {_link(wanted.pcie_speed_gts or speed, wanted.pcie_width or lanes)}, as the class says",
                   f"the device can do {able}; look at the slot, the riser and the firmware's settings")


def pcie_findings(devices: t.Sequence[Device], links: t.Mapping[str, t.Mapping[str, t.Any]], rails: t.Sequence[str],
                  wanted: NodeClass) -> list[Problem]:
    """Of the rails, or of all physical functions where no rails are named."""
    chosen = [device for device in devices if (device.pci in rails if rails else not device.is_vf)]
    found = [pcie_finding(device.pci, links.get(device.pci, {}), wanted) for device in chosen]
    return [problem for problem in found if problem is not None]
