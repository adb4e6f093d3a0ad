# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What the wires allow: network share by collective, the largest plausible figure, what a figure looks like."""
from __future__ import annotations

import dataclasses
import math

from .hardware import Hardware, Question, rails_used
from .reference_data import NVLINK, PCIE_UPPER

PERFTEST = ("ib_write_bw",)
# RoCEv2 over IPv4: 14 Ethernet, 20 IP, 8 UDP, 12 BTH, 4 iCRC, 4 FCS, 20 preamble and gap (facts 3.1).
FRAME_OVERHEAD_BYTES = 82
# Clock and rounding: a measurement may lie this far above what the wire carries.
_TOLERANCE = 1.02
# A figure is taken for another known one within this distance: 194 for 196, 365 for 372.
_LIKE = 0.06


def payload_share(mtu_bytes: int) -> float:
    return mtu_bytes / (mtu_bytes + FRAME_OVERHEAD_BYTES)


def ranks(hardware: Hardware, question: Question) -> int:
    return question.nodes * (1 if question.rails is not None else max(hardware.gpus_per_node, 1))


def leaves_domain(hardware: Hardware, question: Question) -> bool:
    """Does it use the NICs at all?"""
    return question.nodes > (hardware.domain_nodes if question.mnnvl else 1)


def network(hardware: Hardware, question: Question, payload: bool) -> float | None:
    """busbw that the NICs of a node allow (ring, or the shares of alltoall); None without a network."""
    if not hardware.nics or not hardware.nic_gbit or question.nodes < 2:
        return None
    nodes = hardware.domain_nodes if question.mnnvl else 1
    rails = rails_used(hardware, question)
    total = nodes * rails * hardware.nic_gbit / 8 * (payload_share(hardware.mtu_bytes) if payload else 1.0)
    if question.collective == "alltoall":
        return _alltoall(hardware, question, total, nodes)
    if question.collective == "sendrecv":
        per_node = 1 if question.rails is not None else hardware.gpus_per_node
        return total / max(1, per_node * nodes)
    return total


def _alltoall(hardware: Hardware, question: Question, total: float, nodes: int) -> float | None:
    """Each GPU has its share of the NICs; of its n - 1 messages those to its own group stay inside."""
    count = ranks(hardware, question)
    group = count // question.nodes * nodes
    outside = count - group
    return total / group * (count - 1) / outside if outside > 0 else None


def upper_bound(hardware: Hardware, question: Question) -> tuple[float | None, str]:
    """More than this is a broken measurement (one rank, wrong unit, clock), and why."""
    line = network(hardware, question, payload=False)
    if question.collective in PERFTEST:
        return (None, "no line rate") if line is None else (line * _TOLERANCE, "line rate")
    inside = _inside(hardware, question)
    if not leaves_domain(hardware, question):
        return (None, "no figure for this GPU") if inside is None else (inside * _TOLERANCE, "raw NVLink or PCIe")
    if line is None:
        return None, "no network in the class"
    why = "sum of line rates"
    if question.algorithm != "ring" and question.collective == "all_reduce":
        line *= _tree_gain(hardware, question)
        why += ", reduced inside the nodes first"
    if inside is not None and inside < line:
        line, why = inside, why + ", cut by NVLink or PCIe"
    return line * _TOLERANCE, why


def _tree_gain(hardware: Hardware, question: Question) -> float:
    """Reduce inside, then between nodes: a node sends 2(N-1)/N of the data, busbw counts 2(n-1)/n of it.

    Two nodes of 8: 1.75 (seen 1.2, facts 3.1). In-network reduction sends everything once: twice that.
    """
    group = question.nodes if not question.mnnvl else math.ceil(question.nodes / hardware.domain_nodes)
    count = ranks(hardware, question)
    gain = (count - 1) / count * group / (group - 1) if group > 1 and count > 1 else 1.0
    return gain * (2 if hardware.in_network_reduction else 1)


def _inside(hardware: Hardware, question: Question) -> float | None:
    if question.rails is not None:
        return None
    link = NVLINK.get(hardware.gpu) if hardware.intra == "nvlink" else None
    raw = hardware.intra_raw_gbps or (link.raw if link else PCIE_UPPER.get(hardware.gpu))
    if raw is None or question.algorithm == "ring" or question.collective != "all_reduce" or hardware.intra != "nvlink":
        return raw
    # NVLink SHARP moves S(n+1)/n instead of 2S(n-1)/n (facts 3.1).
    count = hardware.gpus_per_node * (min(question.nodes, hardware.domain_nodes) if question.mnnvl else 1)
    return raw * max(1.0, 2 * (count - 1) / (count + 1))


def hints(hardware: Hardware, question: Question, busbw_gbps: float) -> list[str]:
    """What else this figure would be right for; for the report, never for the verdict."""
    found: list[str] = []
    plain = dataclasses.replace(hardware, domain_nodes=1)
    off = network(plain, Question(question.collective, question.nodes, "ring"), payload=True)
    if question.mnnvl and off and _like(busbw_gbps, off):
        found.append(f"about the sum of the {hardware.nics} NICs ({off:.0f}): NVLink between the nodes is off "
                     "(MNNVL, IMEX channel)")
    ring = network(hardware, question, payload=True)
    if question.algorithm == "default" and question.nodes == 2 and ring and busbw_gbps > 1.05 * ring:
        found.append("above the sum of the NICs: two nodes use a tree, each NIC carries about half; judge with RING")
    link = NVLINK.get(hardware.gpu)
    if question.nodes == 1 and question.algorithm == "default" and link and link.nvls and _like(busbw_gbps, link.ring):
        found.append(f"about the ring figure ({link.ring:g}): NVLink SHARP was not used (fabric manager, fall-back)")
    if ring and question.rails is None and hardware.nics > 1:
        lost = ring * (hardware.nics - 1) / hardware.nics
        if abs(busbw_gbps - lost) < 0.02 * ring:
            found.append(f"about {hardware.nics - 1} of {hardware.nics} NICs ({lost:.0f}): run the rails one by one")
    return found


def _like(value: float, wanted: float) -> bool:
    return abs(value - wanted) <= _LIKE * wanted
