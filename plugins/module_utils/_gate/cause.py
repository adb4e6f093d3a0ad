# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""From clues (error lines, counters, transport, what the search found) to likely causes and what to do. Pure.

Clues are read from the stored forms (`run.summary`, `Conclusion.to_dict`), so that yesterday's report and a run
that just ended are explained alike.
"""
from __future__ import annotations

import dataclasses
import fnmatch
import typing as t
from dataclasses import dataclass, field

from .cause_rules import CAUSE_RULES, CauseRule, Strength

Plain = t.Mapping[str, t.Any]
# {node: {device: {counter: value}}}
Snapshot = t.Mapping[str, t.Mapping[str, t.Mapping[str, int]]]

_ORDER: dict[str, int] = {"certain": 0, "likely": 1, "hint": 2}
MAX_EVIDENCE = 8
MAX_PLACES = 64


@dataclass(frozen=True)
class Wanted:
    """What the node class says of the way; None: nobody said."""

    rdma: bool | None = None
    gdr: bool | None = None
    nvls: bool | None = None
    mnnvl: bool | None = None
    pfc: bool | None = None
    adaptive_routing: bool | None = None
    hcas: int | None = None


@dataclass(frozen=True)
class Clue:
    key: str
    text: str
    node: str = ""
    device: str = ""
    amount: int = 1


@dataclass
class Cause:
    id: str
    strength: Strength
    cause: str
    action: str
    source: str
    places: list[dict[str, str]] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    clues: int = 0

    def to_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)

    def add(self, clue: Clue) -> None:
        place = {"node": clue.node, "device": clue.device}
        if (clue.node or clue.device) and place not in self.places and len(self.places) < MAX_PLACES:
            self.places.append(place)
        if len(self.evidence) < MAX_EVIDENCE:
            self.evidence.append(clue.text)
        self.clues += 1


def causes(clues: t.Sequence[Clue], wanted: Wanted | None = None, errors: t.Sequence[Plain] = ()) -> list[Cause]:
    """The most certain first. ``errors``: error lines, of which each cause is explained by its own row."""
    wanted = wanted or Wanted()
    found: list[Cause] = []
    for rule in CAUSE_RULES:
        fitting = [clue for clue in clues if _fits(rule, clue, clues, wanted)]
        if fitting:
            cause = Cause(rule.id, rule.strength, rule.cause, rule.action, rule.source)
            for clue in fitting:
                cause.add(clue)
            found.append(cause)
    found += _of_errors(errors)
    return sorted(found, key=lambda cause: _ORDER[cause.strength])


def _fits(rule: CauseRule, clue: Clue, clues: t.Sequence[Clue], wanted: Wanted) -> bool:
    if clue.amount < rule.least or not _any(rule.keys, clue):
        return False
    if any(getattr(wanted, name) not in values for name, values in rule.when):
        return False
    near = [other for other in clues if _same_place(clue, other)]
    return (all(any(_any((key,), other) for other in near) for key in rule.needs)
            and not any(_any(rule.unless, other) for other in near))


def _any(patterns: t.Iterable[str], clue: Clue) -> bool:
    return any(fnmatch.fnmatchcase(clue.key, pattern) for pattern in patterns)


def _same_place(one: Clue, other: Clue) -> bool:
    """A clue that does not say where it was seen goes with every place."""
    return (not one.node or not other.node or one.node == other.node) and (
        not one.device or not other.device or one.device == other.device)


def _of_errors(errors: t.Sequence[Plain]) -> list[Cause]:
    """Only causes, not what they drag behind them; with none of them the rest, as a hint."""
    serious = [error for error in errors if error["role"] == "cause"]
    strength: Strength = "likely" if serious else "hint"
    by_id: dict[str, Cause] = {}
    for error in serious or [error for error in errors if error["state"] or error["id"] == "nccl-warn"]:
        name = f"error-{error['id']}"
        cause = by_id.setdefault(name, Cause(name, strength, error["meaning"], error["action"], error["source"]))
        cause.add(_error_clue(error))
    return list(by_id.values())


# -- clues ----------------------------------------------------------------------------------------------


def of_result(result: Plain, wanted: Wanted | None = None) -> list[Clue]:
    """From a parsed log in its stored form."""
    return [_error_clue(error) for error in result.get("errors") or []] + list(
        _transport(result.get("transport") or {}, wanted or Wanted()))


def _error_clue(error: Plain) -> Clue:
    times = f" ({error['count']} times)" if error.get("count", 1) > 1 else ""
    return Clue(f"error:{error['id']}", f"line {error['line']}: {error['text']}{times}", error.get("host") or "",
                (error.get("hca") or "").partition(":")[0], error.get("count", 1))


def _transport(transport: Plain, wanted: Wanted) -> t.Iterator[Clue]:
    networks, host_memory = transport.get("networks") or {}, transport.get("host_memory_channels") or 0
    if "Socket" in networks:
        yield Clue("transport:socket", "NCCL: Using network Socket")
    if transport.get("no_ib_device"):
        yield Clue("transport:no-ib-device", "NCCL: NET/IB : No device found")
    if host_memory:
        channels = host_memory + (transport.get("gdr_channels") or 0)
        yield Clue("transport:no-gdr", f"{host_memory} of {channels} network channels without GDRDMA", "", "",
                   host_memory)
    elif transport.get("gdr") is False:
        yield Clue("transport:no-gdr", "NCCL: Connected all rings, GDR 0")
    for device, enabled in sorted((transport.get("gdr_hcas") or {}).items()):
        if not enabled:
            yield Clue("transport:no-gdr", f"NCCL: GPU Direct RDMA Disabled for HCA '{device}'", "", device)
    if transport.get("nvls") is False:
        yield Clue("transport:no-nvls", "NCCL: NVLS multicast support is not available")
    if transport.get("mnnvl") is False:
        yield Clue("transport:mnnvl-off", "NCCL: MNNVL 0")
    hcas = transport.get("hcas") or {}
    if hcas and wanted.hcas and len(hcas) < wanted.hcas:
        yield Clue("transport:hcas-missing", f"NCCL uses {len(hcas)} NICs ({', '.join(sorted(hcas))}), the class has "
                   f"{wanted.hcas}")


def of_counters(before: Snapshot, after: Snapshot) -> list[Clue]:
    """What grew between two readings. A counter that is missing in one of them is off, not zero (mlx5 1.10)."""
    clues = []
    for node in sorted(set(before) & set(after)):
        for device in sorted(set(before[node]) & set(after[node])):
            old, new = before[node][device], after[node][device]
            for name in sorted(set(old) & set(new)):
                delta = new[name] - old[name]
                where = f"{node} {device}: {name}"
                if delta > 0:
                    clues.append(Clue(f"counter:{name}", f"{where} +{delta}", node, device, delta))
                elif delta < 0:
                    clues.append(Clue(f"reset:{name}", f"{where} fell from {old[name]} to {new[name]}", node, device))
    return clues


def of_search(conclusion: Plain) -> list[Clue]:
    """From the planner's conclusion in its stored form."""
    clues = []
    for one in conclusion.get("convicted") or []:
        kind = one["scope"] or "pair" if one["kind"] == "path" else one["symptom"]
        rails = " ".join(f"rail {rail}" for rail in one.get("rails") or ())
        for node in one["nodes"]:
            clues.append(Clue(f"convicted:{one['kind']}:{kind}", one["text"], node, rails))
    if conclusion.get("fleet_wide"):
        clues.append(Clue("search:fleet-wide", conclusion["fleet_wide"]))
    if conclusion.get("scale"):
        clues.append(Clue("search:scale", conclusion["scale"]))
    return clues
