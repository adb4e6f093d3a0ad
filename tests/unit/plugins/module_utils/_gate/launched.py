# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pool behind nccl_batch: it knows rails and their speed, and nothing of the planner or of faults by name."""
from __future__ import annotations

import random
import typing as t
from dataclasses import dataclass, field

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.model import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.search import Setting, rules_of

HCAS = {0: "mlx5_0:1", 1: "mlx5_1:1", 2: "mlx5_2:1", 3: "mlx5_3:1"}
RAIL_GBPS = 50.0
LIMIT = RAIL_GBPS * len(HCAS)
RULES = rules_of({}, ["ring", "rails"], 4, False, 0.9)
SETTING = Setting("gb200", tuple(Node(f"gb{i}") for i in range(1, 9)), HCAS, 4, LIMIT,
                  environment={"NCCL_ALGO": "RING", "NCCL_IB_HCA": "=" + ",".join(HCAS.values())}, rules=RULES)


@dataclass
class Hosts:
    """``speed``: share of the rate that a rail of a host reaches; what is not named reaches 0.97.

    ``dead``: (host, rail) on which every run crashes; ``hung``: hosts that never end.
    """

    speed: dict[tuple[str, int], float] = field(default_factory=dict)
    dead: set[tuple[str, int]] = field(default_factory=set)
    hung: set[str] = field(default_factory=set)
    everybody: float = 1.0
    noise: float = 0.01
    asked: list[dict[str, t.Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(7)

    def __call__(self, launches: list[dict[str, t.Any]]) -> dict[str, dict[str, t.Any]]:
        self.asked += launches
        states: dict[str, dict[str, t.Any]] = {}
        for launch in launches:
            before = states.get(launch["needs"])
            skipped = before is not None and before["verdict"]["state"] == "HANG"
            states[launch["id"]] = {"id": launch["id"], "verdict": None if skipped else self._verdict(launch)}
        return states

    def _verdict(self, launch: dict[str, t.Any]) -> dict[str, t.Any]:
        names = launch["environment"]["NCCL_IB_HCA"].lstrip("=").split(",")
        rails = [rail for rail, hca in HCAS.items() if hca in names]
        if self.hung.intersection(launch["hosts"]):
            return {"state": "HANG", "reason": "the run did not end in its time", "ratio": None}
        if any((host, rail) in self.dead for host in launch["hosts"] for rail in rails):
            return {"state": "CRASH", "reason": "a rank died", "ratio": None}
        slowest = min(self.speed.get((host, rail), 0.97) for host in launch["hosts"] for rail in rails)
        # As in a ring whose channels carry the same bytes: the slowest of all rails decides.
        busbw = slowest * self.everybody * RAIL_GBPS * len(rails) * self.random.gauss(1, self.noise)
        ratio = busbw / launch["min_busbw_gbps"]
        return {"state": "PASS" if ratio >= 0.9 else "SLOW", "reason": f"{ratio:.1%} of the limit", "ratio": ratio}
