# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of slurm_interruptions: ask accounting for a window of time, and make the report."""
from __future__ import annotations

import time
import typing as t
from datetime import datetime, timezone

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from . import report, report_events
from .report import Window

DAY_SECONDS = 86400.0
# Without it times are local ones, and an hour of the autumn is there twice [slurm-24.11 slurm_make_time_str].
_SECONDS = ("env", "SLURM_TIME_FORMAT=%s")
_HINTS = {
    "missing": "install the package slurm-client (Debian, Ubuntu) or slurm (RHEL)",
    "timeout": "slurmdbd does not answer: sacctmgr ping; a shorter window asks for less",
    "failed": "does slurmdbd run, and does slurm.conf name it (AccountingStorageType)? Else there is no accounting",
}
T = t.TypeVar("T")


def spec() -> dict[str, t.Any]:
    return {
        "days": {"type": "float", "default": 30.0},
        "start": {"type": "str"},
        "end": {"type": "str"},
        "planned_sources": {"type": "list", "elements": "str", "default": list(report_events.PLANNED_SOURCES)},
        "tool_timeout_seconds": {"type": "int", "default": 120},
    }


def _time(name: str, text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        raise AidcError([Problem(name, repr(text), "a time in UTC such as 2026-01-02T03:04:05Z")]) from None


def window(params: t.Mapping[str, t.Any], now: float) -> Window:
    """From the options; an end that is still to come is now."""
    end = min(now, _time("end", params["end"])) if params["end"] else now
    start = _time("start", params["start"]) if params["start"] else end - params["days"] * DAY_SECONDS
    if start >= end:
        raise AidcError([Problem("start", report._text(start), f"a time before the end, {report._text(end)}",
                                 "days, or start and end, give the window")])
    return Window(start, end)


def _asked(machine: Machine, parser: t.Callable[[str], T], *argv: str) -> T:
    result = machine.tool(*_SECONDS, *argv)
    if result.rc == 127:
        # env's word for a program that is not there.
        raise AidcError([Problem(argv[0], "the program is not installed", "Slurm's tools", _HINTS["missing"])])
    bad: list[Problem] = []
    found = result.parsed(parser, bad, "lines of accounting", _HINTS.get(result.state, _HINTS["failed"]))
    if found is None:
        raise AidcError([Problem(argv[0], bad[0].got, bad[0].wanted, bad[0].hint)])
    return found


def _node_count(machine: Machine) -> int | None:
    """Nodes that slurmctld knows; None where it does not answer, as the report does not need it."""
    result = machine.tool("sinfo", "-a", "-N", "-h", "-o", "%N")
    return len(set(result.stdout.split())) or None if result.state == "ok" else None


def read(machine: Machine, params: t.Mapping[str, t.Any], now: float | None = None) -> dict[str, t.Any]:
    """What slurm_interruptions returns; raises AidcError where accounting cannot be asked."""
    chosen = window(params, time.time() if now is None else now)
    start, end = f"uts{int(chosen.start)}", f"uts{int(chosen.end)}"
    events = _asked(machine, report_events.events, "sacctmgr", "-n", "-P", "show", "event", f"start={start}",
                    f"end={end}", f"format={report_events.EVENT_FORMAT}")
    jobs = _asked(machine, report_events.jobs, "sacct", "-a", "-X", "-D", "-n", "-P", "-S", start, "-E", end, "-s",
                  "NF", f"--format={report_events.JOB_FORMAT}")
    made = report.make(events, jobs, _node_count(machine), chosen, params["planned_sources"])
    return {"report": made, "table": report.table(made)}
