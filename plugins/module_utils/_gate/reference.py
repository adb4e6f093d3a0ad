# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What bandwidth to expect, by which rule and from which inputs (facts nccl-gate 3).

operator's number > stored baseline > published table > model > median of the fleet. What a machine *is* comes
from its node class; live values have no way in here (`compare_live` turns them into findings, nothing else).
"""
from __future__ import annotations

import dataclasses
import statistics
import typing as t
from dataclasses import dataclass

from .._nccl.model import Limit
from . import bounds
from .hardware import Algorithm, Hardware, Question, rails_used
from .model import Run
from .reference_data import NVLINK, TABLE, Row

# Beyond it one odd machine moves the median by less than the noise of a run.
FLEET_LEAST = 5
# More than this many robust deviations below the median is an outlier (usual for the median absolute deviation).
OUTLIER_DEVIATIONS = 5.0
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Bands:
    """Shares of the limit: below ``fail`` it failed, from ``pass_`` on it passed, between them it is slow."""

    pass_fraction: float = 0.90
    fail_fraction: float = 0.80

    def __post_init__(self) -> None:
        if not 0 < self.fail_fraction <= self.pass_fraction <= 1:
            raise ValueError(f"got bands {self.fail_fraction} and {self.pass_fraction}, wanted 0 < fail <= pass <= 1")


@dataclass(frozen=True)
class OperatorNumber:
    """What the operator expects on this platform. None and 0 match everything; the most exact one counts."""

    busbw_gbps: float
    collective: str = ""
    algorithm: str = ""
    nodes: tuple[int, int] | None = None
    rails: int | None = None
    mnnvl: bool | None = None
    why: str = ""

    def fits(self, question: Question, rails: int) -> bool:
        return (self.collective in ("", question.collective) and self.algorithm in ("", question.algorithm)
                and (self.nodes is None or self.nodes[0] <= question.nodes <= self.nodes[1])
                and self.rails in (None, rails) and self.mnnvl in (None, question.mnnvl))

    @property
    def exactness(self) -> tuple[int, float]:
        given = (self.collective, self.algorithm, self.nodes, self.rails is not None, self.mnnvl is not None)
        width = self.nodes[1] - self.nodes[0] if self.nodes else float("inf")
        return sum(bool(value) for value in given), -width


@dataclass(frozen=True)
class Baseline:
    """Measured on this very pool in good state and accepted by a person: L40S has no other absolute number."""

    busbw_gbps: float
    collective: str
    nodes: int
    algorithm: str = "ring"
    rails: int | None = None
    when: str = ""


@dataclass
class Reference:
    """``limit`` is None if nothing is known to compare with; ``reason`` says why, or what to keep in mind."""

    limit: Limit | None
    reason: str
    # Found from the pool itself: it can show outliers, but nothing passes by it.
    outliers_only: bool = False

    def to_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def resolve(hardware: Hardware, question: Question, operator: t.Sequence[OperatorNumber] = (),
            baselines: t.Sequence[Baseline] = (), fleet: t.Sequence[float] = (),
            bands: t.Mapping[str, Bands] | None = None) -> Reference:
    """The limit for one run. ``bands`` by stage; the entry "" is for all others."""
    problem = question.problem(hardware)
    if problem:
        return Reference(None, problem)
    rules = (lambda: _operator(hardware, question, operator), lambda: _baseline(hardware, question, baselines),
             lambda: _table(hardware, question), lambda: _model(hardware, question),
             lambda: _fleet(question, fleet))
    for rule in rules:
        found = rule()
        if found is not None:
            return _finish(hardware, question, found, bands or {})
    return Reference(None, f"no number for {question.collective} on {hardware.name}: state one, or accept a measured "
                           f"baseline; a fleet median needs {FLEET_LEAST} nodes")


@dataclass
class _Found:
    rule: str
    busbw_gbps: float
    inputs: dict[str, t.Any]
    reason: str


def _finish(hardware: Hardware, question: Question, found: _Found, bands: t.Mapping[str, Bands]) -> Reference:
    band = bands.get(question.stage) or bands.get("") or Bands()
    upper, why = bounds.upper_bound(hardware, question)
    if upper is not None and found.busbw_gbps > upper:
        # A number that physics forbids would fail every machine or let a broken clock pass.
        return Reference(None, f"{found.rule} gives {found.busbw_gbps:g} GB/s, more than can be: {upper:g} ({why})")
    inputs = {"class": dataclasses.asdict(hardware), "question": dataclasses.asdict(question), **found.inputs,
              "upper_bound": why, "outliers_only": found.rule == "fleet-median"}
    limit = Limit(round(found.busbw_gbps, 3), found.rule, inputs, band.pass_fraction, band.fail_fraction,
                  None if upper is None else round(upper, 3))
    return Reference(limit, found.reason, found.rule == "fleet-median")


def _operator(hardware: Hardware, question: Question, numbers: t.Sequence[OperatorNumber]) -> _Found | None:
    rails = rails_used(hardware, question)
    fitting = [one for one in numbers if one.fits(question, rails)]
    if not fitting:
        return None
    best = max(fitting, key=lambda one: one.exactness)
    return _Found("operator", best.busbw_gbps, {"operator": dataclasses.asdict(best)},
                  best.why or "stated by the operator")


def _baseline(hardware: Hardware, question: Question, baselines: t.Sequence[Baseline]) -> _Found | None:
    rails = rails_used(hardware, question)
    for one in baselines:
        if ((one.collective, one.nodes, one.algorithm) == (question.collective, question.nodes, question.algorithm)
                and one.rails in (None, rails)):
            return _Found("baseline", one.busbw_gbps, {"baseline": dataclasses.asdict(one)},
                          f"measured on this pool in good state {one.when}".rstrip())
    return None


def _table(hardware: Hardware, question: Question) -> _Found | None:
    row = next((row for row in TABLE if _row_fits(row, hardware, question)), None)
    if row is None:
        return None
    return _Found("table", row.busbw_gbps, {"row": dataclasses.asdict(row)}, f"published: {row.source}")


def _row_fits(row: Row, hardware: Hardware, question: Question) -> bool:
    machine = (hardware.gpu, hardware.gpus_per_node, hardware.transport)
    transport = row.transport if row.nics else hardware.transport
    if machine != (row.gpu, row.gpus_per_node, transport) or question.rails is not None:
        return False
    if row.nics and (row.nics, row.nic_gbit) != (hardware.nics, hardware.nic_gbit):
        return False
    wanted = (row.collective, row.algorithm, row.mnnvl)
    asked = (question.collective, question.algorithm, question.mnnvl and question.nodes > 1)
    return wanted == asked and row.nodes[0] <= question.nodes <= row.nodes[1] and _whole_domain(row, hardware)


def _whole_domain(row: Row, hardware: Hardware) -> bool:
    """Rows of NVL72 hold for domains of 18 trays; NVL36 has no published figure."""
    return not row.mnnvl or hardware.domain_nodes == 18


def _model(hardware: Hardware, question: Question) -> _Found | None:
    """min(inside the node or domain, rails x line rate x payload share), as a ring would use them."""
    inside = intra(hardware)
    inter = bounds.network(hardware, question, payload=True)
    if question.collective in bounds.PERFTEST:
        if inter is None:
            return None
        rule, value = "model-perftest", inter
    elif not bounds.leaves_domain(hardware, question):
        if inside is None:
            return None
        rule, value = "model-intra", inside
    else:
        if inter is None or (inside is None and hardware.gpus_per_node > 1 and question.rails is None):
            return None  # PCIe-only nodes: nobody can say what the inside gives (facts 3.1), measure a baseline
        rule, value = "model-ring", min(inter, inside) if inside is not None and question.rails is None else inter
    inputs = {"intra_gbps": inside, "inter_gbps": None if inter is None else round(inter, 3),
              "payload_share": round(bounds.payload_share(hardware.mtu_bytes), 4),
              "rails": rails_used(hardware, question), "source": "facts nccl-gate 3.1, 3.4"}
    reason = "computed from the node class"
    if question.algorithm != "ring" and question.nodes == 2 and question.collective == "all_reduce":
        reason += "; two nodes may show up to twice this with the default algorithm: judge the network with RING"
    return _Found(rule, value, inputs, reason)


def intra(hardware: Hardware) -> float | None:
    """What a ring reaches over NVLink; None without NVLink."""
    if hardware.intra_ring_gbps:
        return hardware.intra_ring_gbps
    link = NVLINK.get(hardware.gpu)
    return link.ring if link and hardware.intra == "nvlink" else None


def question_of(run: Run, hardware: Hardware, mnnvl: bool = False) -> Question:
    """What a run of the planner measures over all rails. A split by rail is ``rails=1`` of the same.

    A pair is there to measure the network. Where a ring is held up by NVLink before the NICs are full (8 x 400G
    on H100: 365 against 392, so a lost NIC shows 343 and passes) it runs alltoall, which is not.
    """
    nodes = len(run.nodes)
    if not hardware.gpus_per_node and run.kind == "pair":
        # Three nodes (an odd one out) are three measurements of two; the lowest counts.
        return Question("ib_write_bw", 2, stage=run.stage)
    mnnvl = mnnvl and nodes > 1
    ring = Question("all_reduce", nodes, "ring", mnnvl=mnnvl, stage=run.stage)
    inside, inter = intra(hardware), bounds.network(hardware, ring, payload=True)
    held_up = run.kind == "pair" and not mnnvl and inside is not None and inter is not None and inside < inter
    collective = "alltoall" if run.kind == "alltoall" or held_up else "all_reduce"
    algorithm: Algorithm = "default" if run.kind == "node" else "ring"
    rails = 1 if run.kind == "rails" else None
    return dataclasses.replace(ring, collective=collective, algorithm=algorithm, rails=rails)


def _fleet(question: Question, values: t.Sequence[float]) -> _Found | None:
    usable = [value for value in values if value > 0]
    if len(usable) < FLEET_LEAST:
        return None
    middle = statistics.median(usable)
    inputs = {"fleet_count": len(usable), "fleet_median": middle, "fleet_mad": mad(usable)}
    return _Found("fleet-median", middle, inputs, "median of this pool: shows outliers, passes nobody")


def mad(values: t.Sequence[float]) -> float:
    """Median absolute deviation."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)


def outliers(values: t.Mapping[str, float], floor: float = 0.01) -> list[str]:
    """Who is far below the median of the pool. ``floor``: smallest spread believed, as a share of the median."""
    if len(values) < FLEET_LEAST:
        return []
    middle = statistics.median(values.values())
    spread = max(_MAD_TO_SIGMA * mad(list(values.values())), floor * middle)
    return sorted(name for name, value in values.items() if value < middle - OUTLIER_DEVIATIONS * spread)
