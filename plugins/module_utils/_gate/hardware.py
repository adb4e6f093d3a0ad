# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What a node class says of the hardware, what is asked about it, and how live values differ from it."""
from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv",
               "ib_write_bw")
Algorithm = t.Literal["ring", "default"]


@dataclass(frozen=True)
class Hardware:
    """From the node class. ``domain_nodes``: nodes that share NVLink (18 in an NVL72; 1 elsewhere)."""

    name: str
    gpu: str = ""
    gpus_per_node: int = 0
    intra: t.Literal["nvlink", "pcie", "none"] = "none"
    nics: int = 0
    nic_gbit: float = 0
    mtu_bytes: int = 4096
    transport: str = "rdma"
    domain_nodes: int = 1
    # Set by a class that knows better than the table in `reference_data`.
    intra_ring_gbps: float | None = None
    intra_raw_gbps: float | None = None
    in_network_reduction: bool = False


@dataclass(frozen=True)
class Question:
    """One run. ``rails``: how many of them carry it, one GPU each (None: all); ``mnnvl``: NVLink between nodes."""

    collective: str = "all_reduce"
    nodes: int = 1
    algorithm: Algorithm = "ring"
    rails: int | None = None
    mnnvl: bool = False
    stage: str = ""

    def problem(self, hardware: Hardware) -> str:
        """Why there is no answer; empty if there is one."""
        if self.collective not in COLLECTIVES:
            return f"got collective {self.collective!r}, wanted one of {', '.join(COLLECTIVES)}"
        if self.nodes < 1:
            return f"got {self.nodes} nodes, wanted one at least"
        if self.rails is not None and not 1 <= self.rails <= max(hardware.nics, 1):
            return f"got {self.rails} rails, the class {hardware.name} has {hardware.nics}"
        if self.mnnvl and hardware.domain_nodes < 2:
            return f"the class {hardware.name} has no NVLink between nodes"
        if self.collective == "ib_write_bw":
            return "" if self.nodes == 2 else "ib_write_bw runs between two nodes"
        if not hardware.gpus_per_node:
            return f"the class {hardware.name} has no GPU: it is judged by perftest"
        if self.nodes == 1 and hardware.gpus_per_node == 1:
            return "one rank moves nothing"
        return ""


def rails_used(hardware: Hardware, question: Question) -> int:
    if question.rails is not None:
        return question.rails
    return 1 if question.collective == "ib_write_bw" else hardware.nics


@dataclass(frozen=True)
class LiveFinding:
    """A live value that differs from the class. It is reported; it changes no limit."""

    what: str
    got: float
    wanted: float
    text: str


def compare_live(hardware: Hardware, rates_gbit: t.Mapping[str, float] | None = None,
                 mtu_bytes: t.Mapping[str, int] | None = None, gpus: int | None = None) -> list[LiveFinding]:
    """What the node shows now against what its class says (``rates_gbit`` of the rails that are up)."""
    findings: list[LiveFinding] = []
    if gpus is not None and gpus != hardware.gpus_per_node:
        findings.append(LiveFinding("gpus", gpus, hardware.gpus_per_node,
                                    f"{gpus} GPUs, the class has {hardware.gpus_per_node}"))
    if rates_gbit is not None:
        if len(rates_gbit) != hardware.nics:
            findings.append(LiveFinding("rails", len(rates_gbit), hardware.nics,
                                        f"{len(rates_gbit)} rails are up, the class has {hardware.nics}"))
        findings += [LiveFinding(f"rate of {name}", rate, hardware.nic_gbit,
                                 f"{name} runs at {rate:g} Gb/s, the class has {hardware.nic_gbit:g}")
                     for name, rate in sorted(rates_gbit.items()) if not math.isclose(rate, hardware.nic_gbit)]
    findings += [LiveFinding(f"MTU of {name}", mtu, hardware.mtu_bytes,
                             f"{name} has an RDMA MTU of {mtu}, the class has {hardware.mtu_bytes}")
                 for name, mtu in sorted((mtu_bytes or {}).items()) if mtu != hardware.mtu_bytes]
    return findings
