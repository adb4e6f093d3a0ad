# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What the planner asks for (`Run`), what it is told (`Outcome`) and what it says in the end (`Conclusion`).

A bandwidth never appears here: the caller judges each run against its own limit (`reference`) and hands
over the ratio, so the planner is the same for every machine and collective.
"""
from __future__ import annotations

import dataclasses
import math
import typing as t
from dataclasses import dataclass, field

from .._nccl.model import Verdict

Stage = t.Literal["node", "whole", "pair", "confirm", "path", "rail", "verify", "halves"]
Kind = t.Literal["node", "ring", "alltoall", "rails", "pair"]
OutcomeState = t.Literal["ok", "wrong", "crash", "hang", "none"]
Symptom = t.Literal["slow", "intermittent", "wrong", "crash", "hang"]
FinalVerdict = t.Literal["PASS", "SLOW", "FAIL", "INCOMPLETE"]

# What a judged run means for the search. A run that cannot be trusted is no evidence, for or against a node.
_OUTCOMES: dict[str, OutcomeState] = {
    "PASS": "ok", "SLOW": "ok", "WRONG": "wrong", "CRASH": "crash", "HANG": "hang",
    "UNVERIFIED": "none", "INCOMPLETE": "none", "INVALID": "none", "LAUNCH": "none",
}
# Any ratio above it is a broken measurement: even an NVLink Switch reduction stays below 2(n-1)/(n+1) < 2.
_HIGHEST_RATIO = 4.0


@dataclass(frozen=True)
class Node:
    """``leaf`` is the group of nodes that share their access switches; empty when nobody knows."""

    name: str
    leaf: str = ""


@dataclass(frozen=True)
class Run:
    """One launch. ``nodes`` of the runs given out together never overlap.

    kind ``node``: each node by itself; ``ring`` and ``alltoall``: all ``nodes`` together; ``rails``: the same,
    each rail alone (split by GPU index); ``pair``: a ring over two or three nodes. ``rails``: measure each
    rail alone as well and give the ratios in `Outcome.rails`; in stage ``rail`` the rail's own NIC is forced.
    """

    id: str
    stage: Stage
    kind: Kind
    nodes: tuple[str, ...]
    round: int
    repeat: int
    rails: bool = False
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """``ratio`` is peak bandwidth / limit. ``none``: the run gave no usable result (launch, skip, invalid)."""

    state: OutcomeState
    ratio: float | None = None
    rails: t.Mapping[int, float] = field(default_factory=dict)
    note: str = ""

    @property
    def value(self) -> float | None:
        """The measurement as one number: 0 for a failure that is seen for certain, None for no evidence."""
        if self.state in ("wrong", "crash", "hang"):
            return 0.0
        if self.state == "none" or not _usable(self.ratio):
            return None
        return self.ratio

    @classmethod
    def of_verdict(cls, verdict: Verdict, rails: t.Mapping[int, float] | None = None) -> Outcome:
        state = _OUTCOMES[verdict.state]
        return cls(state, verdict.ratio, dict(rails or {}), verdict.reason)

    def to_dict(self) -> dict[str, t.Any]:
        ratio = self.ratio if _usable(self.ratio) else None
        rails = {str(rail): value for rail, value in self.rails.items() if _usable(value)}
        plain: dict[str, t.Any] = {"state": self.state, "ratio": ratio}
        return {**plain, **({"rails": rails} if rails else {}), **({"note": self.note} if self.note else {})}

    @classmethod
    def from_dict(cls, data: t.Mapping[str, t.Any]) -> Outcome:
        rails = {int(rail): float(value) for rail, value in data.get("rails", {}).items()}
        return cls(data["state"], data.get("ratio"), rails, data.get("note", ""))


def _usable(ratio: float | None) -> bool:
    return ratio is not None and math.isfinite(ratio) and 0 <= ratio < _HIGHEST_RATIO


@dataclass(frozen=True)
class Rules:
    """How sure the search must be. The numbers are chosen with ``tests/sim`` (its table has the error rates)."""

    pass_fraction: float = 0.90
    fail_fraction: float = 0.80
    # A node is convicted only if it is also this far below what the good pairs reach (facts nccl-gate 4.3).
    relative: float = 0.95
    # Whole-pool runs that are looked at. A class without group runs (perftest) has none: pairs only.
    kinds: tuple[Kind, ...] = ("ring", "alltoall", "rails")
    rails: int = 0
    node_stage: bool = True
    # The limit is the pool's own median: outliers can be found, but nothing can pass by it.
    outliers_only: bool = False
    looks: int = 3
    screen_repeats: int = 2
    screen_most: int = 6
    max_repeats: int = 20
    # Looks for a fault that comes and goes; 0 switches the hunt off.
    flaky_repeats: int = 30
    retries: int = 2
    loops: int = 3
    path_rounds: int = 4
    # Relative standard deviation of repeated runs, until enough were seen (2-5 % on RoCE, facts 3.3).
    prior_noise: float = 0.03
    noise_floor: float = 0.01
    noise_ceiling: float = 0.06
    # Log likelihood ratios: how much evidence clears, makes suspect, convicts (see `stats`).
    clear: float = 7.0
    suspect: float = 4.0
    convict: float = 7.0
    path: float = 14.0
    # With fewer good pairs than this share of all the cause is common, and nobody is blamed.
    fleet_share: float = 0.10

    def to_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "kinds": list(self.kinds)}

    @classmethod
    def from_dict(cls, data: t.Mapping[str, t.Any]) -> Rules:
        return cls(**{**data, "kinds": tuple(data["kinds"])})


@dataclass
class Conviction:
    """``rail``: node and rail are known; ``node``: the node, whatever rail; ``path``: both ends are sound."""

    kind: t.Literal["node", "rail", "path"]
    nodes: tuple[str, ...]
    symptom: Symptom
    rails: tuple[int, ...] = ()
    # Of a path: the leaves of its ends, and whether all traffic between them is slow or one pair's only.
    leaves: tuple[str, ...] = ()
    scope: t.Literal["", "leaves", "pair"] = ""
    evidence: list[dict[str, t.Any]] = field(default_factory=list)
    text: str = ""


@dataclass
class Conclusion:
    verdict: FinalVerdict
    reason: str
    done: bool
    convicted: list[Conviction] = field(default_factory=list)
    # Under suspicion, not proven: never drained.
    suspects: list[dict[str, t.Any]] = field(default_factory=list)
    fleet_wide: str = ""
    scale: str = ""
    not_tested: list[dict[str, t.Any]] = field(default_factory=list)
    verified: bool = False
    notes: list[str] = field(default_factory=list)
    pool: str = ""
    seed: int = 0
    noise: float | None = None
    rounds: int = 0
    batches: int = 0
    runs: int = 0
    loops: int = 0
    history: list[dict[str, t.Any]] = field(default_factory=list)

    @property
    def bad_nodes(self) -> list[str]:
        """The nodes that may be drained: a slow path drains nobody."""
        return sorted({name for one in self.convicted if one.kind != "path" for name in one.nodes})

    def to_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "bad_nodes": self.bad_nodes}
