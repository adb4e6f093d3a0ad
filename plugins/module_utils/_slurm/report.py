# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The report of interruptions: how often, why, how long, and what it cost. Pure."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass
from datetime import datetime, timezone

from .report_events import PLANNED_SOURCES, Event, LostJob, cause_of

SCHEMA_VERSION = 1
HOUR = 3600.0
# slurmdbd keeps whole seconds.
_GAP_SECONDS = 1.0
# What says nothing by itself: another event of the same interruption has the cause.
_WEAK = ("start of Slurm", "no reason")
Data = dict[str, t.Any]


@dataclass(frozen=True)
class Window:
    start: float
    end: float

    @property
    def hours(self) -> float:
        return max(0.0, self.end - self.start) / HOUR


@dataclass(frozen=True)
class Interruption:
    """``start`` and ``end`` are cut to the window; ``open`` while it lasts."""

    node: str
    start: float
    end: float
    cause: str
    planned: bool
    reason: str
    open: bool

    @property
    def hours(self) -> float:
        return (self.end - self.start) / HOUR


def _text(time: float) -> str:
    return datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _chains(events: t.Iterable[Event]) -> t.Iterator[list[Event]]:
    """Events of one node that follow each other without a gap, or overlap."""
    chain: list[Event] = []
    until: float | None = None
    for event in sorted(events, key=lambda event: (event.node, event.start, event.end is None)):
        same = chain and chain[0].node == event.node and (until is None or event.start <= until + _GAP_SECONDS)
        if not same:
            if chain:
                yield chain
            chain, until = [], event.end
        elif until is not None:
            until = None if event.end is None else max(until, event.end)
        chain.append(event)
    if chain:
        yield chain


def _interruption(chain: t.Sequence[Event], window: Window, planned_sources: t.Collection[str]) -> Interruption | None:
    ends = [event.end for event in chain]
    lasts = None in ends
    start = max(chain[0].start, window.start)
    end = window.end if lasts else min(max(end for end in ends if end is not None), window.end)
    if end < start or chain[0].start > window.end:
        return None
    causes = [(*cause_of(event, planned_sources), event.reason) for event in chain]
    # The first that says something; what comes after it happened to a node that was out already.
    cause, planned, reason = next((one for one in causes if one[0] not in _WEAK), causes[0])
    return Interruption(chain[0].node, start, end, cause, planned, reason, lasts)


def interruptions(events: t.Iterable[Event], window: Window,
                  planned_sources: t.Collection[str] = PLANNED_SOURCES) -> list[Interruption]:
    found = (_interruption(chain, window, planned_sources) for chain in _chains(events))
    return sorted((one for one in found if one is not None), key=lambda one: (one.start, one.node))


def _grouped(found: t.Sequence[Interruption],
             key: t.Callable[[Interruption], t.Any]) -> dict[t.Any, list[Interruption]]:
    groups: dict[t.Any, list[Interruption]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


def _hours(found: t.Iterable[Interruption]) -> float:
    return sum(one.hours for one in found)


def _causes(found: t.Sequence[Interruption]) -> list[Data]:
    rows = [{"cause": cause, "planned": planned, "interruptions": len(group), "node_hours": round(_hours(group), 3),
             "nodes": sorted({one.node for one in group})}
            for (cause, planned), group in _grouped(found, lambda one: (one.cause, one.planned)).items()]
    return sorted(rows, key=lambda row: (row["planned"], -row["node_hours"], row["cause"]))


def _nodes(found: t.Sequence[Interruption]) -> list[Data]:
    rows = [{"node": node, "interruptions": sum(not one.planned for one in group),
             "planned": sum(one.planned for one in group), "hours": round(_hours(group), 3)}
            for node, group in _grouped(found, lambda one: one.node).items()]
    return sorted(rows, key=lambda row: (-row["interruptions"], -row["hours"], row["node"]))


def _lost_jobs(jobs: t.Sequence[LostJob], window: Window) -> Data:
    inside = [job for job in jobs if job.end is None or window.start <= job.end <= window.end]
    return {"ended_by_nodes": len(inside),
            "node_hours": round(sum(job.nodes * job.seconds for job in inside) / HOUR, 3)}


def _node_hours(found: t.Sequence[Interruption], nodes: int | None, window: Window) -> tuple[Data, float | None]:
    unplanned, planned = (_hours(one for one in found if one.planned is which) for which in (False, True))
    total = None if nodes is None else nodes * window.hours
    up = None if total is None else max(0.0, total - unplanned - planned)
    percent = round(100 * up / total, 3) if up is not None and total else None
    return {"total": None if total is None else round(total, 3), "lost": round(unplanned, 3),
            "lost_planned": round(planned, 3), "available_percent": percent}, up


def make(events: t.Iterable[Event], jobs: t.Sequence[LostJob], nodes: int | None, window: Window,
         planned_sources: t.Collection[str] = PLANNED_SOURCES) -> Data:
    """``nodes``: how many the cluster has; None where nobody could say, then there is no mean per node."""
    found = interruptions(events, window, planned_sources)
    count = sum(not one.planned for one in found)
    hours, up = _node_hours(found, nodes, window)
    return {
        "schema_version": SCHEMA_VERSION,
        "window": {"start": _text(window.start), "end": _text(window.end), "hours": round(window.hours, 3)},
        "nodes": nodes, "interruptions": count, "planned": len(found) - count, "node_hours": hours,
        # Of the whole cluster, and of one node in the time that it could work.
        "mean_hours_between": round(window.hours / count, 3) if count else None,
        "mean_node_hours_between": round(up / count, 3) if count and up is not None else None,
        "causes": _causes(found), "by_node": _nodes(found), "jobs": _lost_jobs(jobs, window),
        "list": [{"node": one.node, "start": _text(one.start), "end": None if one.open else _text(one.end),
                  "hours": round(one.hours, 3), "cause": one.cause, "planned": one.planned, "reason": one.reason}
                 for one in found],
    }


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.1f} {unit}"


def _columns(rows: t.Sequence[t.Sequence[str]]) -> list[str]:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return ["  ".join(field.ljust(width) for field, width in zip(row, widths)).rstrip() for row in rows]


def table(report: Data, worst: int = 10) -> list[str]:
    window, hours = report["window"], report["node_hours"]
    lines = [
        f"{window['start']} to {window['end']}: {_number(window['hours'], 'h')}, "
        f"{'unknown' if report['nodes'] is None else report['nodes']} nodes",
        f"interruptions: {report['interruptions']} (and {report['planned']} planned); mean between two: "
        f"{_number(report['mean_hours_between'], 'h')} of the cluster, "
        f"{_number(report['mean_node_hours_between'], 'h')} of a node",
        f"node-hours lost: {_number(hours['lost'], 'h')} (and {_number(hours['lost_planned'], 'h')} planned); "
        f"available: {_number(hours['available_percent'], '%')}",
        f"jobs ended by a node's failure: {report['jobs']['ended_by_nodes']}, "
        f"{_number(report['jobs']['node_hours'], 'node-hours')} of work", "",
    ]
    if not report["list"]:
        return [*lines, "no node was out"]
    causes = [("CAUSE", "PLANNED", "INTERRUPTIONS", "NODE-HOURS", "NODES"), *(
        (row["cause"], "yes" if row["planned"] else "no", str(row["interruptions"]), f"{row['node_hours']:,.1f}",
         str(len(row["nodes"]))) for row in report["causes"])]
    nodes = [("NODE", "INTERRUPTIONS", "PLANNED", "HOURS"), *(
        (row["node"], str(row["interruptions"]), str(row["planned"]), f"{row['hours']:,.1f}")
        for row in report["by_node"][:worst])]
    return [*lines, *_columns(causes), "", *_columns(nodes)]
