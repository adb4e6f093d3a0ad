# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What NCCL needs to know of a node's network, as environment variables with a reason each. Pure.

The rails are those of the gate (``_gate.pool.rails_of``): what it measured is what a job gets.
"""
from __future__ import annotations

import ipaddress
import re
import typing as t

from .._gate.pool import ShapeError, rails_of

HEADER = ("# Written by aidc.gpu_cluster, role slurm, which rewrites it: do not edit.\n"
          "# Environment of each task of a job (TaskProlog); what the job sets itself stays.\n")
# A wider range than this says nothing.
WIDEST_PREFIX = 8
_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
Line = tuple[str, str, str]


def interface_of(facts: t.Mapping[str, t.Any], address: str) -> str:
    """The interface with this address in the facts of ``setup``; else the one of the default route; else nothing."""
    for name in facts.get("interfaces") or ():
        entry = facts.get(str(name).replace("-", "_")) or {}
        own = [entry.get("ipv4") or {}, *(entry.get("ipv4_secondaries") or ())]
        if any(one.get("address") == address for one in own):
            return str(entry.get("device") or name)
    return str((facts.get("default_ipv4") or {}).get("interface") or "")


def covering(addresses: t.Sequence[str]) -> str:
    """The smallest IPv4 network that has all of them; nothing where it would be too wide."""
    numbers = [int(ipaddress.IPv4Address(address)) for address in addresses]
    if not numbers:
        return ""
    length = 32 - (min(numbers) ^ max(numbers)).bit_length()
    if length < WIDEST_PREFIX:
        return ""
    return str(ipaddress.IPv4Network((min(numbers), length), strict=False))


def _rails(rails: t.Sequence[t.Mapping[str, t.Any]]) -> list[Line]:
    if not rails:
        return []
    names = ",".join(str(rail["hca"]) for rail in rails)
    found = [
        ("NCCL_IB_HCA", f"={names}", "the rails in order; by the = names are exact, or mlx5_1 would take mlx5_10"),
        ("NCCL_IB_ADDR_FAMILY", "AF_INET", "the GID by family, version and range: an index differs between ports"),
        ("NCCL_IB_ROCE_VERSION_NUM", "2", "RoCE v2, which is routed"),
    ]
    network = covering([str(rail["address"]) for rail in rails])
    if network:
        found.append(("NCCL_IB_ADDR_RANGE", network, "the rails' addresses, where a port has others, too"))
    return found


def profile(
    info: t.Any, pcis: t.Sequence[str], facts: t.Mapping[str, t.Any], address: str, dscp: int | None,
    extra: t.Mapping[str, t.Any],
) -> dict[str, t.Any]:
    """``text`` of the file, ``environment`` as a mapping, and ``problems`` with rails. Raises ShapeError."""
    found = rails_of(info, pcis) if pcis else {"rails": [], "problems": []}
    lines = _rails(found["rails"])
    interface = interface_of(facts, address)
    if interface:
        lines.append(("NCCL_SOCKET_IFNAME", f"={interface}", "the bootstrap stays on the management network"))
    if dscp is not None and found["rails"]:
        if not 0 <= dscp <= 63:
            raise ShapeError(f"dscp: got {dscp}, wanted 0 to 63")
        lines.append(("NCCL_IB_TC", str(dscp << 2), f"DSCP {dscp} as traffic class; NCCL takes none from RDMA-CM"))
    for name, value in extra.items():
        if not _NAME.match(str(name)) or "\n" in str(value):
            raise ShapeError(f"environment: got {name!r}, wanted capitals, digits and _, and a value of one line")
    lines = [line for line in lines if line[0] not in extra]
    lines += [(str(name), str(value), "given in the inventory") for name, value in extra.items()]
    text = HEADER + "".join(f"# {why}\n{name}={value}\n" for name, value, why in lines)
    return {"text": text, "environment": {name: value for name, value, _why in lines}, "problems": found["problems"]}
