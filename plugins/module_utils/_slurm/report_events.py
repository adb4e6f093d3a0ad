# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Interruptions of nodes from Slurm's accounting: what sacctmgr and sacct print, and why each node was out. Pure.

sacctmgr has no JSON for events (24.11 prints its table whatever is asked), so ``-P``; the reason stands last, as it may
hold the separator. slurmdbd gets an event when a drained node has no job left, and a new one whenever state or reason
changes [SchedMD slurm-24.11 node_mgr.c, update_node; accounting_storage]; so events of a node that follow each other
without a gap are one interruption.
"""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from datetime import datetime

from . import reason as reasons

EVENT_FORMAT = "NodeName,TimeStart,TimeEnd,State,User,Reason"
JOB_FORMAT = "JobID,State,Start,End,NNodes,ElapsedRaw"
# Sources of ours that take a node out because somebody wants it out.
PLANNED_SOURCES = ("handover", "upgrade", "reboot", "maintenance")
# The kernel writes "Xid (PCI:0000:9b:00): 119, ..." [driver-slurm-k8s 1.9], people "xid79".
_XID = re.compile(r"\bxid(?:\s*\(PCI:[^)]*\))?\W{0,3}(\d+)", re.IGNORECASE)
# Reasons that are not ours: (pattern, cause, whether somebody wanted it).
_WORDS: tuple[tuple[str, str, bool], ...] = (
    (r"Not responding", "not responding", False),
    (r"Node unexpectedly rebooted", "unexpected reboot", False),
    (r"reboot (timed out|failed)|ResumeTimeout reached", "reboot that did not end", False),
    (r"reboot (requested|issued|complete)|Reboot ASAP", "reboot by Slurm", True),
    (r"(Prolog|Epilog) error", "prolog or epilog", False),
    (r"Kill task failed|batch job complete failure", "processes that cannot be ended", False),
    (r"NHC:", "NHC", False),
    (r"cold-start|Cluster Registered|slurmctld", "start of Slurm", True),
    (r"Powered down|Set to State=FUTURE", "power saving", True),
)
_CAUSES = tuple((re.compile(pattern), cause, planned) for pattern, cause, planned in _WORDS)


@dataclass(frozen=True)
class Event:
    """``end`` is None while it lasts."""

    node: str
    start: float
    end: float | None
    state: str
    user: str
    reason: str


@dataclass(frozen=True)
class LostJob:
    job: str
    end: float | None
    nodes: int
    seconds: int


def _when(text: str) -> float | None:
    """Seconds as SLURM_TIME_FORMAT=%s gives them, or this host's local time; None for Unknown and None."""
    if text.isdigit():
        return float(text) or None
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").timestamp()
    except ValueError:
        if text in ("", "Unknown", "None"):
            return None
        raise ValueError(f"got the time {text!r}, wanted seconds or YYYY-MM-DDTHH:MM:SS") from None


def _rows(text: str, columns: int) -> t.Iterator[list[str]]:
    for line in filter(str.strip, text.splitlines()):
        row = line.split("|", columns - 1)
        if len(row) != columns:
            raise ValueError(f"got the line {line[:80]!r}, wanted {columns} columns")
        yield [field.strip() for field in row]


def events(text: str) -> list[Event]:
    """``sacctmgr -n -P show event format=EVENT_FORMAT``; events of the cluster have no node and are left out."""
    found = []
    for node, start, end, state, user, why in _rows(text, 6):
        began = _when(start)
        if node and began is not None:
            found.append(Event(node, began, _when(end), state, user.partition("(")[0], why))
    return found


def jobs(text: str) -> list[LostJob]:
    """``sacct -n -P -X -D --format=JOB_FORMAT``: jobs that a node's failure ended, requeued ones included."""
    return [LostJob(job, _when(end), int(nodes or 0), int(seconds or 0))
            for job, state, _start, end, nodes, seconds in _rows(text, 6) if state.startswith("NODE_FAIL")]


def _ours(found: reasons.Reason, planned_sources: t.Collection[str]) -> tuple[str, bool]:
    cause = f"aidc:{found.source}"
    if found.source == "health":
        # The first check that failed, as the health program writes it.
        cause += f": {found.text.partition(':')[0].strip()}"
    return cause, found.source in planned_sources


def cause_of(event: Event, planned_sources: t.Collection[str] = PLANNED_SOURCES) -> tuple[str, bool]:
    """The cause in a few words, and whether somebody wanted it. A node of a reservation for maintenance has a ``$``."""
    found = reasons.parse(event.reason)
    if found.kind == "ours":
        cause, planned = _ours(found, planned_sources)
    else:
        cause, planned = _foreign(event)
    return cause, planned or event.state.endswith("$")


def _foreign(event: Event) -> tuple[str, bool]:
    if xid := _XID.search(event.reason):
        return f"Xid {xid[1]}", False
    if lacking := reasons.registration(event.reason):
        return f"registration: {lacking[0]['field']}", False
    for pattern, cause, planned in _CAUSES:
        if pattern.match(event.reason):
            return cause, planned
    return ("operator" if event.reason else "no reason"), False
