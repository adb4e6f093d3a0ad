# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that answers the planner's runs: healthy spread, noise and faults. Only numbers, nothing runs.

What is assumed, on the pessimistic side where nobody has measured it:

- A sound node reaches 93 to 100 % of its limit, always the same (uniform, drawn once).
- Noise has two halves of equal variance: one of the run, one shared by all runs of a leaf that go at the same
  time. Besides, 5 % of all runs lose 20 %. A pool-wide run has one draw, as its slowest member is one.
- A lost NIC takes 1/rails of the node and does NOT show in the all-node per-rail runs (NCCL may spread the
  rest over the NICs that are left); only in stage ``rail``, where the NIC is forced, its rail is dead.
- A rail at half rate takes half of 1/rails of the node in all-rail runs, and half of that rail alone.
- An intermittent fault is a lost NIC in half of the runs, drawn for each run.
- A slow path makes all traffic between two leaves slow (0.5 to 0.8); a ring over many nodes uses only the
  paths between neighbouring leaves, alltoall uses all.
"""
from __future__ import annotations

import math
import random
import typing as t
from dataclasses import dataclass, field

from plugins.module_utils._gate.match import LeafPair, crossed
from plugins.module_utils._gate.model import Node, Outcome, Run

OUTLIERS, OUTLIER_LOSS = 0.05, 0.20
HEALTHY = (0.93, 1.0)
SLOW_PATH = (0.5, 0.8)
LEAF_SIZE = {2: 1, 3: 3, 8: 4, 64: 16, 512: 32, 4096: 32}
FAULTS = ("nic", "half_rail", "path", "flaky", "wrong", "hang")
_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class Fault:
    kind: str
    where: tuple[str, ...]  # one node, or the two leaves of a path
    rail: int = 0
    factor: float = 1.0
    # Wrong data of a GPU shows with the node alone as well, that of a NIC does not.
    local: bool = False


@dataclass
class World:
    """``whole_factor``: slow only when (nearly) everybody runs; ``fleet_factor``: everything is slow alike."""

    size: int
    rails: int
    noise: float
    seed: int
    faults: list[Fault] = field(default_factory=list)
    whole_factor: float = 1.0
    fleet_factor: float = 1.0
    leaf_size: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        per_leaf = self.leaf_size or LEAF_SIZE.get(self.size, 8)
        self.nodes = [Node(f"n{i:04d}", f"l{i // per_leaf:03d}") for i in range(self.size)]
        self.leaf_of = {node.name: node.leaf for node in self.nodes}
        self.base = {node.name: self.random.uniform(*HEALTHY) * self.fleet_factor for node in self.nodes}
        self._slot = -1
        self._leaf_noise: dict[str, float] = {}
        self._index()

    def _index(self) -> None:
        self._at: dict[str, list[Fault]] = {}
        for fault in self.faults:
            if fault.kind != "path":
                self._at.setdefault(fault.where[0], []).append(fault)
        self._paths = {fault.where: fault.factor for fault in self.faults if fault.kind == "path"}

    def add_faults(self, count: int, kinds: t.Sequence[str] = FAULTS) -> None:
        """On different nodes and paths; kinds drawn evenly. One leaf has no path to another."""
        leaves = sorted(set(self.leaf_of.values()))
        usable = [kind for kind in kinds if kind != "path" or len(leaves) > 1]
        nodes = self.random.sample([node.name for node in self.nodes], count)
        pairs: set[tuple[str, ...]] = set()
        for name in nodes:
            kind = self.random.choice(usable)
            if kind == "path":
                pair = tuple(sorted(self.random.sample(leaves, 2)))
                if pair in pairs:
                    continue
                pairs.add(pair)
                self.faults.append(Fault("path", pair, factor=self.random.uniform(*SLOW_PATH)))
            else:
                local = kind == "wrong" and self.random.random() < 0.5
                self.faults.append(Fault(kind, (name,), self.random.randrange(self.rails), local=local))
        self._index()

    # -- one run -----------------------------------------------------------------------------------------------

    def outcomes(self, runs: t.Sequence[Run]) -> dict[str, Outcome]:
        """Runs that go at the same time."""
        self._slot += 1
        self._leaf_noise.clear()
        return {run.id: self.outcome(run) for run in runs}

    def outcome(self, run: Run) -> Outcome:
        active = [fault for name in (run.nodes if len(run.nodes) < 9 else self._at) if name in self._at
                  for fault in self._at[name]]
        if len(run.nodes) >= 9 and active:
            members = set(run.nodes)
            active = [fault for fault in active if fault.where[0] in members]
        active = [fault for fault in active if fault.kind != "flaky" or self.random.random() < 0.5]
        certain = self._certain(run, active)
        if certain:
            return certain
        swing = self._swing(run)
        if run.kind == "node":
            return Outcome("ok", self.base[run.nodes[0]] * swing)
        value = self._all_rails(run, active) * swing
        rails = self._each_rail(run, active, swing) if run.rails else {}
        return Outcome("ok", max(value, 0.01), rails)

    @staticmethod
    def _certain(run: Run, active: t.Sequence[Fault]) -> Outcome | None:
        kinds = {fault.kind for fault in active if run.kind != "node" or fault.local}
        if "hang" in kinds:
            return Outcome("hang")
        return Outcome("wrong") if "wrong" in kinds else None

    def _all_rails(self, run: Run, active: t.Sequence[Fault]) -> float:
        loss = {"nic": 1 / self.rails, "flaky": 1 / self.rails, "half_rail": 0.5 / self.rails}
        factors: dict[str, float] = {}
        for fault in active:
            name = fault.where[0]
            factors[name] = factors.get(name, 1.0) - loss.get(fault.kind, 0.0)
        base = self.base
        value = self._lowest(run.nodes)
        for name, factor in factors.items():
            value = min(value, base[name] * factor)
        if len(run.nodes) > self.size * 0.6:
            value *= self.whole_factor
        used = self._used_paths(run)
        return min([value, *(self._paths[pair] for pair in used if pair in self._paths)]) if used else value

    def _lowest(self, names: tuple[str, ...]) -> float:
        if len(names) == 2:
            return min(self.base[names[0]], self.base[names[1]])
        return min(self.base[name] for name in names)

    def _used_paths(self, run: Run) -> t.Collection[tuple[str, ...]]:
        if not self._paths or len(run.nodes) < 2:
            return ()
        if run.kind == "alltoall" or len(run.nodes) < 4:
            leaves = {self.leaf_of[name] for name in run.nodes}
            return [pair for pair in self._paths if leaves.issuperset(pair)]
        order = [self.leaf_of[name] for name in run.nodes]
        return {tuple(sorted(pair)) for pair in zip(order, [*order[1:], order[0]])}

    def _each_rail(self, run: Run, active: t.Sequence[Fault], swing: float) -> dict[int, float]:
        base = self._lowest(run.nodes) * swing
        spread = min([1.0, *(1 - 1 / self.rails for fault in active if fault.kind in ("nic", "flaky"))])
        forced = run.stage == "rail"
        rails = dict.fromkeys(range(self.rails), base if forced else base * spread)
        for fault in active:
            if fault.kind == "half_rail":
                rails[fault.rail] = base * 0.5
            elif forced and fault.kind in ("nic", "flaky"):
                rails[fault.rail] = 0.0
        return rails

    def _swing(self, run: Run) -> float:
        gauss = self.random.gauss
        leaves = {self.leaf_of[name] for name in run.nodes} if len(run.nodes) < 4 else set()
        shared = 0.0
        for leaf in sorted(leaves):
            if leaf not in self._leaf_noise:
                self._leaf_noise[leaf] = gauss(0, 1)
            shared += self._leaf_noise[leaf]
        shared = shared / math.sqrt(len(leaves)) if leaves else gauss(0, 1)
        swing = 1 + self.noise * _HALF * (gauss(0, 1) + shared)
        return swing * (1 - OUTLIER_LOSS) if self.random.random() < OUTLIERS else swing


def truth(world: World) -> tuple[set[str], set[LeafPair]]:
    """The bad nodes and the bad leaf-to-leaf paths."""
    nodes = {fault.where[0] for fault in world.faults if fault.kind != "path"}
    paths = {(fault.where[0], fault.where[1]) for fault in world.faults if fault.kind == "path"}
    return nodes, paths


__all__ = ["FAULTS", "Fault", "World", "crossed", "truth"]
