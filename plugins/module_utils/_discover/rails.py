# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which ports of a host are its compute rails, in PCI order, and what is odd about them. Pure."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .classify import nics
from .model import Host, NodeClass, Port, pci_order


def _fastest(ports: t.Sequence[Port], wanted: int) -> list[Port]:
    """More cards than rails: storage and management have slower ones, so the fastest that are alike are the rails."""
    speeds = sorted({port.speed_gbps or 0 for port in ports}, reverse=True)
    group = [port for port in ports if (port.speed_gbps or 0) == speeds[0]]
    if len(group) >= wanted:
        return group
    return sorted(ports, key=lambda port: (-(port.speed_gbps or 0), pci_order(port.pci)))[:wanted]


def _alike(rails: t.Sequence[Port], what: str, got: t.Callable[[Port], str | None], wanted: str,
           hint: str) -> list[Problem]:
    """One finding for each rail whose value is given and another; a single one where all rails have the same."""
    odd = [(number, rail, value) for number, rail in enumerate(rails)
           if (value := got(rail)) is not None and value != wanted]
    if len(odd) == len(rails) > 1 and len({value for _number, _rail, value in odd}) == 1:
        return [Problem(f"{what} of all {len(rails)} rails", odd[0][2], wanted, hint)]
    return [Problem(f"{what} of rail {number} ({rail.pci})", value, wanted, hint) for number, rail, value in odd]


def _speed(rail: Port) -> str:
    return f"{rail.speed_gbps:g} Gb/s" if rail.speed_gbps else f"port {rail.state or 'without a driver'}"


def _slow_link(one: NodeClass) -> t.Callable[[Port], str | None]:
    """The PCIe link where it is below the class; a better one is no finding."""
    def read(rail: Port) -> str | None:
        if rail.pcie_speed_gts is None or rail.pcie_width is None:
            return None
        good = rail.pcie_speed_gts >= one.rail_pcie_speed_gts and rail.pcie_width >= one.rail_pcie_width
        return None if good else f"{rail.pcie_speed_gts:g} GT/s x{rail.pcie_width}"

    return read


def _findings(rails: t.Sequence[Port], one: NodeClass) -> list[Problem]:
    top = one.rail_speed_gbps or max((rail.speed_gbps or 0 for rail in rails), default=0)
    found = []
    if top:
        hint = "look at the cable, the transceiver and the switch port"
        found += _alike(rails, "speed", _speed, f"{top:g} Gb/s", hint)
    if one.rail_link_layer:
        found += _alike(rails, "link layer", lambda rail: rail.link_layer, one.rail_link_layer,
                        "a VPI card: set LINK_TYPE_P1 with the role mlx5_nvconfig")
    if one.rail_pcie_speed_gts and one.rail_pcie_width:
        wanted = f"{one.rail_pcie_speed_gts:g} GT/s x{one.rail_pcie_width}"
        found += _alike(rails, "PCIe link", _slow_link(one), wanted, "look at the slot, the riser and the firmware")
    return found


def choose(host: Host, one: NodeClass) -> tuple[tuple[Port, ...], list[Problem]]:
    """Cards of the class's ids; none that carries something else, never a BlueField."""
    cards, found = nics(host, one), []
    free = [port for port in cards if not port.excluded]
    wanted = one.rail_count or len(free)
    rails = free if len(free) <= wanted else _fastest(free, wanted)
    if len(rails) != wanted:
        addresses = ", ".join(port.pci for port in rails) or "none"
        hint = ("a card is missing: look at dmesg, the slot and the BMC" if len(rails) < wanted else
                "take those that are no rails out of mlx5_port_rails")
        found.append(Problem("rails", f"{len(rails)} ({addresses})", str(wanted), hint))
        if len(rails) < wanted:
            hint = "it is no rail unless you list it, with allow_management"
            found += [Problem(f"NIC {port.pci}", str(port.excluded), "a free port", hint)
                      for port in cards if port.excluded]
    return tuple(rails), [*found, *_findings(rails, one)]
