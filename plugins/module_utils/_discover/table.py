# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What the operator reads: hosts, rails, and where a host is not what its class says. Pure."""
from __future__ import annotations

import typing as t

from .classify import gpu_text
from .propose import Fleet, Proposal

HOSTS = ("HOST", "CLASS", "GPUS", "RAILS", "GB/S", "LINK-LAYER", "NVLINK", "OWNER", "OS", "STACK")
RAILS = ("HOST", "RAIL", "PCI", "NETDEV", "GB/S", "LINK-LAYER", "SUBNET", "LLDP-NEIGHBOUR", "OWNER")
DIFFERENCES = ("HOST", "OBJECT", "GOT", "WANTED", "HINT")


def aligned(rows: t.Sequence[t.Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _set(values: t.Iterable[t.Any]) -> str:
    """The different values, in the order in which they come."""
    texts = dict.fromkeys("?" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
                          for value in values)
    return ", ".join(texts) or "-"


def _host_row(one: Proposal) -> tuple[str, ...]:
    if one.host.error is not None:
        return (one.host.name, "no answer", *["-"] * (len(HOSTS) - 2))
    return (one.host.name, one.group, gpu_text(one.host), str(len(one.rails)),
            _set(rail.speed_gbps for rail in one.rails), _set(rail.link_layer for rail in one.rails),
            one.nvlink_domain or "-", _set(rail.owner for rail in one.rails), one.host.system, one.host.stack)


def hosts_table(fleet: Fleet) -> list[str]:
    return aligned([HOSTS, *map(_host_row, fleet.proposals)])


def rails_table(fleet: Fleet) -> list[str]:
    rows: list[tuple[str, ...]] = [RAILS]
    for one in fleet.proposals:
        for number, rail in enumerate(one.rails):
            cells = (rail.netdev, rail.speed_gbps, rail.link_layer, rail.subnet, rail.neighbour, rail.owner)
            rows.append((one.host.name, str(number), rail.pci, *(_set([cell]) for cell in cells)))
    return aligned(rows)


def differences(fleet: Fleet) -> list[dict[str, str]]:
    return [{"host": one.host.name, **finding.as_dict()} for one in fleet.proposals for finding in one.findings]


def differences_table(fleet: Fleet) -> list[str]:
    rows = [tuple(item[key] for key in ("host", "object", "got", "wanted", "hint")) for item in differences(fleet)]
    return aligned([DIFFERENCES, *rows]) if rows else ["no host differs from its class, and nothing else is odd"]
