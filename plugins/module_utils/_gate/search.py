# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""From what the planner asks for to launches of module nccl_batch, and from its answers back to outcomes. Pure.

A limit is that of the whole network (`Setting.min_busbw_gbps`). A ring over two nodes is held to the same: its
slowest NIC decides whatever the number of nodes. One rail alone is held to its share.
"""
from __future__ import annotations

import dataclasses
import hashlib
import json
import statistics
import typing as t
from dataclasses import dataclass, field

from .._host.errors import AidcError, Problem
from .._nccl.launch import bytes_of
from .._nccl.model import Verdict
from .model import Kind, Node, Outcome, Rules, Run

KINDS: tuple[Kind, ...] = ("ring", "alltoall", "rails")
WHOLE = "all"
Launch = dict[str, t.Any]
Answers = t.Mapping[str, t.Mapping[str, t.Any]]
Runs = t.Sequence["tuple[Run, Outcome]"]


@dataclass(frozen=True)
class Setting:
    """What a search is about. ``rails``: RDMA device and port by rail, the same on all hosts."""

    pool: str
    nodes: tuple[Node, ...]
    rails: t.Mapping[int, str]
    gpus_per_host: int
    min_busbw_gbps: float
    program: str = "all_reduce_perf"
    environment: t.Mapping[str, str] = field(default_factory=dict)
    min_bytes: str = "1G"
    max_bytes: str = "4G"
    time_limit_seconds: int = 120
    # Judged by it: 0 leaves the stage of single nodes out, as their limit is not the network's.
    node_busbw_gbps: float = 0.0
    rules: Rules = field(default_factory=Rules)

    def fingerprint(self) -> str:
        """Two settings with the same one ask the same questions: outcomes of the one hold for the other."""
        plain = dataclasses.asdict(self)
        plain["rails"] = {str(rail): hca for rail, hca in self.rails.items()}
        return hashlib.sha256(json.dumps(plain, sort_keys=True, default=list).encode()).hexdigest()


def rules_of(given: t.Mapping[str, t.Any], kinds: t.Sequence[str], rails: int, nodes: bool,
             pass_fraction: float) -> Rules:
    """The planner's rules, with what a site changes in them."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or "ring" not in kinds:
        raise AidcError([Problem("kinds", ", ".join(kinds) or "none", f"ring, and of {', '.join(KINDS)} what else")])
    own = {"kinds": tuple(kind for kind in KINDS if kind in kinds), "rails": rails, "node_stage": nodes,
           "pass_fraction": pass_fraction, "fail_fraction": min(0.8, pass_fraction)}
    plain = {name: value for name, value in dataclasses.asdict(Rules()).items() if name not in own}
    found = []
    for name, value in given.items():
        wanted: t.Any = type(plain.get(name))
        if name not in plain or isinstance(value, bool) != (wanted is bool) or not isinstance(value, (int, float)):
            found.append(Problem(f"rules: {name}", repr(value), f"a number, for one of {', '.join(sorted(plain))}"))
        else:
            own[name] = wanted(value)
    if found:
        raise AidcError(found)
    return Rules(**t.cast("dict[str, t.Any]", own))


# -- asked ------------------------------------------------------------------------------------------------


def launches(setting: Setting, run: Run) -> list[Launch]:
    """The launches of one run, in the order in which they go: they are on the same hosts."""
    found = [] if _only_rails(run) else [_whole(setting, run)]
    if run.rails:
        needs = found[0]["id"] if found else ""
        found += [_rail(setting, run, rail, hca, needs) for rail, hca in sorted(setting.rails.items())]
    return found


def _only_rails(run: Run) -> bool:
    return run.kind == "rails" or (run.stage == "rail" and run.rails)


def _launch(setting: Setting, run: Run, part: str, limit: float, share: int = 1) -> Launch:
    return {
        "id": f"{run.id}-{part}", "hosts": list(run.nodes), "program": setting.program,
        "environment": dict(setting.environment), "min_bytes": _part_of(setting.min_bytes, share),
        "max_bytes": _part_of(setting.max_bytes, share), "min_busbw_gbps": limit,
        "time_limit_seconds": setting.time_limit_seconds, "needs": "",
    }


def _whole(setting: Setting, run: Run) -> Launch:
    found = _launch(setting, run, WHOLE, setting.node_busbw_gbps if run.kind == "node" else setting.min_busbw_gbps)
    if run.kind == "node":
        # Inside a node the way of the data is not the network's.
        found["environment"].pop("NCCL_IB_HCA", None)
    if run.kind == "alltoall":
        folder, _slash, name = setting.program.rpartition("/")
        found["program"] = f"{folder}{_slash}{name.replace('all_reduce', 'alltoall')}"
        found["min_busbw_gbps"] = alltoall_limit(setting, len(run.nodes))
        # Forcing an algorithm is for reductions only.
        found["environment"].pop("NCCL_ALGO", None)
    return found


def _rail(setting: Setting, run: Run, rail: int, hca: str, needs: str) -> Launch:
    """One NIC, with its share of the bytes, so that it takes as long as all of them together."""
    count = len(setting.rails)
    found = _launch(setting, run, f"rail{rail}", setting.min_busbw_gbps / count, count)
    found["environment"]["NCCL_IB_HCA"] = f"={hca}"
    found["needs"] = needs
    return found


def _part_of(size: str, share: int) -> str:
    found = bytes_of(size)
    if not found:
        raise AidcError([Problem("min_bytes, max_bytes", repr(size), "sizes such as 1M, 8G")])
    return size if share == 1 else str(max(1, found // share // 1024) * 1024)


def alltoall_limit(setting: Setting, nodes: int) -> float:
    """Each GPU has its share of the node's NICs; of its n - 1 messages those inside the node need none."""
    ranks = nodes * setting.gpus_per_host
    return setting.min_busbw_gbps / setting.gpus_per_host * (ranks - 1) / (ranks - setting.gpus_per_host)


# -- answered ---------------------------------------------------------------------------------------------


def outcome(run: Run, answers: Answers) -> Outcome:
    """Of all its launches one outcome: what was seen on all rails, and the share that each rail reached."""
    seen: dict[str, Outcome] = {}
    for part_id, answer in answers.items():
        verdict = answer.get("verdict")
        if verdict:
            plain = Verdict(verdict["state"], str(verdict["reason"]), ratio=verdict["ratio"])
            found = Outcome.of_verdict(plain)
            if found.state == "hang" and answer.get("whole"):
                # Seen with a launcher on a busy head: not the network's doing, and two hangs convict.
                found = Outcome("none", note="measured to its end, but the launch did not end in its time")
            seen[part_id.rpartition("-")[2]] = found
    whole = seen.pop(WHOLE, None)
    rails = {int(part[4:]): value for part, one in seen.items() if (value := one.value) is not None}
    if whole is not None:
        return dataclasses.replace(whole, rails=rails)
    return _of_rails(list(seen.values()), rails)


def _of_rails(seen: t.Sequence[Outcome], rails: t.Mapping[int, float]) -> Outcome:
    """A rail that fails is at zero; the run as a whole failed if every rail did, or its data is wrong."""
    if not rails:
        return Outcome("none", note=next((one.note for one in seen if one.note), "no rail gave a result"))
    wrong = next((one for one in seen if one.state == "wrong"), None)
    if wrong is not None:
        return dataclasses.replace(wrong, rails=dict(rails))
    if not any(rails.values()):
        return dataclasses.replace(next(one for one in seen if one.value == 0.0), rails=dict(rails))
    return Outcome("ok", min(rails.values()), dict(rails), next((one.note for one in seen if one.value == 0.0), ""))


# -- said -------------------------------------------------------------------------------------------------


def culprits(conclusion: t.Mapping[str, t.Any], runs: Runs, rails: t.Mapping[int, str]) -> list[str]:
    """One line each: `gb2 rail 2 (mlx5_2): 0.48 of its peers in 6 runs`, from `document.replay`'s runs."""
    return [_culprit(one, conclusion, runs, rails) for one in conclusion["convicted"]]


def _culprit(one: t.Mapping[str, t.Any], conclusion: t.Mapping[str, t.Any], runs: Runs,
             rails: t.Mapping[int, str]) -> str:
    if one["kind"] == "path":
        where = f"path {' - '.join(one['nodes'])}"
        if one["scope"] == "leaves":
            where = f"path of leaf {' to leaf '.join(one['leaves'])} (seen with {' and '.join(one['nodes'])})"
    else:
        where = one["nodes"][0] + "".join(f" rail {rail}{_hca(rails, rail)}" for rail in one["rails"])
    measure, values = _measure(one)
    if one["symptom"] in ("wrong", "hang", "crash") or not values:
        words = {"wrong": "wrong data", "hang": "hangs", "crash": "crashes"}.get(one["symptom"], one["symptom"])
        return f"{where}: {words} in {len(values)} runs"
    middle = statistics.median(values)
    for reached, whose in ((_peers(measure, conclusion, runs), "its peers"), (_siblings(one, runs), "its other rails")):
        if reached:
            return f"{where}: {middle / reached:.2f} of {whose} in {len(values)} runs"
    return f"{where}: {middle:.2f} of the limit in {len(values)} runs"


def _hca(rails: t.Mapping[int, str], rail: int) -> str:
    return f" ({rails[rail].partition(':')[0]})" if rail in rails else ""


def _measure(one: t.Mapping[str, t.Any]) -> tuple[int | None, list[float]]:
    """What convicted it, a rail or (None) all of them together, and all runs of that."""
    for rail in (*one["rails"], None):
        name = "all" if rail is None else str(rail)
        values = [value for probe in one["evidence"] for value in probe["values"].get(name, ())]
        if values:
            return rail, values
    return None, []


def _peers(rail: int | None, conclusion: t.Mapping[str, t.Any], runs: Runs) -> float:
    """The median of what the others reached among themselves, each with its best partner."""
    bad = set(conclusion["bad_nodes"])
    series: dict[tuple[str, ...], list[float]] = {}
    for run, outcome in runs:
        value = outcome.value if rail is None else outcome.rails.get(rail)
        if run.kind == "pair" and value is not None and bad.isdisjoint(run.nodes):
            series.setdefault(run.nodes, []).append(value)
    best: dict[str, float] = {}
    for nodes, values in series.items():
        for node in nodes:
            best[node] = max(best.get(node, 0.0), statistics.median(values))
    return statistics.median(best.values()) if best else 0.0


def _siblings(one: t.Mapping[str, t.Any], runs: Runs) -> float:
    """What the node's sound rails reached where each was run alone; the others' were not then."""
    values = [value for run, outcome in runs if one["nodes"][0] in run.nodes
              for rail, value in outcome.rails.items() if one["rails"] and rail not in one["rails"]]
    return statistics.median(values) if values else 0.0
