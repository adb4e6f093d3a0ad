# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One audit as a document and as lines for a terminal. Pure."""
from __future__ import annotations

import textwrap
import typing as t
from datetime import datetime

from .._fleet.record import TIME_FORMAT
from .evaluate import Audit
from .expect import HostWant
from .facts import Host
from .group import compress, group
from .model import SEVERITIES, Finding, Severity

SCHEMA_VERSION = 1
WIDTH = 110


def _as_data(finding: Finding) -> dict[str, t.Any]:
    return {**finding._asdict(), "hosts": list(finding.hosts), "evidence": list(finding.evidence),
            "where": where(finding)}


def where(finding: Finding) -> str:
    hosts = compress(finding.hosts) or "nobody"
    return hosts if finding.rail is None else f"{hosts} rail {finding.rail}"


def _pools(wants: t.Sequence[HostWant], findings: t.Sequence[Finding]) -> list[dict[str, t.Any]]:
    members: dict[str, list[HostWant]] = {}
    for want in wants:
        members.setdefault(want.pool, []).append(want)
    counts: dict[tuple[str, str], int] = {}
    for one in findings:
        counts[one.pool, one.severity] = counts.get((one.pool, one.severity), 0) + 1
    return [{"pool": pool, "hosts": len(hosts), "rails": sum(len(one.rails) for one in hosts),
             **{severity: counts.get((pool, severity), 0) for severity in SEVERITIES}}
            for pool, hosts in members.items()]


def audit(wants: t.Sequence[HostWant], hosts: t.Mapping[str, Host], now: datetime) -> dict[str, t.Any]:
    """The whole audit. The order of the hosts in ``wants`` is the inventory's."""
    order = {want.name: place for place, want in enumerate(wants)}
    findings = group(Audit(wants, hosts).run(), order)
    return {"schema_version": SCHEMA_VERSION, "kind": "audit", "time": now.strftime(TIME_FORMAT),
            "hosts": len(wants), "rails": sum(len(want.rails) for want in wants), "pools": _pools(wants, findings),
            "counts": {severity: sum(one.severity == severity for one in findings) for severity in SEVERITIES},
            "findings": [_as_data(one) for one in findings]}


def failing(document: t.Mapping[str, t.Any], fail_on: str) -> list[dict[str, t.Any]]:
    """Findings of this severity and of graver ones; ``never`` is none."""
    if fail_on == "never":
        return []
    grave: t.Sequence[Severity] = SEVERITIES[:SEVERITIES.index(t.cast(Severity, fail_on)) + 1]
    return [one for one in document["findings"] if one["severity"] in grave]


def _lines(finding: t.Mapping[str, t.Any]) -> list[str]:
    head = f"{finding['severity'].upper():8}{finding['id']:20} {finding['where']}"
    found = [*textwrap.wrap(head, WIDTH, subsequent_indent=" " * 29, break_on_hyphens=False)]
    for label, value in (("got", finding["got"]), ("wanted", finding["wanted"]), ("fix", finding["fix"])):
        found += textwrap.wrap(f"{label:7} {value}", WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 16,
                               break_on_hyphens=False)
    shown = [text for text in finding["evidence"] if text != finding["got"]]
    return found + [f"{'':8}seen    {text}"[:4 * WIDTH] for text in shown]


def table(document: t.Mapping[str, t.Any]) -> list[str]:
    """A line for each pool, then the findings, the gravest first."""
    titles = ("POOL", "HOSTS", "RAILS", "ERRORS", "WARNINGS", "NOTES")
    rows = [titles, *(tuple(str(pool[key]) for key in ("pool", "hosts", "rails", *SEVERITIES))
                      for pool in document["pools"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(titles))]
    lines = ["  ".join(cell.rjust(width) if column else cell.ljust(width)
                       for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
    pool = None
    for finding in document["findings"]:
        if (finding["severity"], finding["pool"]) != pool:
            pool = (finding["severity"], finding["pool"])
            lines.append(f"--- {finding['severity']}s of {finding['pool']}")
        lines += _lines(finding)
    return lines


def message(found: t.Sequence[t.Mapping[str, t.Any]], most: int = 5) -> str:
    texts = [f"{one['id']}: {one['where']}: got {one['got']}, wanted {one['wanted']}" for one in found[:most]]
    return "; ".join(texts) + (f"; and {len(found) - most} more" if len(found) > most else "")
