# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Equal findings of many hosts and rails become one; names of hosts in short. Pure."""
from __future__ import annotations

import re
import typing as t

from .model import SEVERITIES, Finding, Rule

_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")
# Places that are shown of many with one and the same finding.
SHOWN = 4


class Issue(t.NamedTuple):
    """What a rule says of one place. ``host`` is None where nobody is blamed."""

    rule: Rule
    pool: str
    host: str | None
    rail: int | None
    got: str
    wanted: str
    detail: str = ""


def _ranges(numbers: t.Sequence[str]) -> str:
    """01,02,03,07 as 01-03,07; they are of equal width and sorted."""
    parts: list[list[str]] = []
    for number in numbers:
        if parts and int(parts[-1][-1]) + 1 == int(number):
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(part[0] if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def compress(names: t.Iterable[str]) -> str:
    """``gb1-[01-18],l40s-03``: the form that Slurm and pdsh read. The order of first names stays."""
    groups: dict[tuple[str, int, str], list[str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        key = (match[1], len(match[2]), match[3]) if match else (name, 0, "")
        groups.setdefault(key, []).append(match[2] if match else "")
    found = []
    for (head, width, tail), numbers in groups.items():
        if not width:
            found.append(head)
            continue
        text = _ranges(sorted(set(numbers)))
        found.append(f"{head}[{text}]{tail}" if len(numbers) > 1 else f"{head}{text}{tail}")
    return ",".join(found)


def _evidence(issues: t.Sequence[Issue]) -> tuple[str, ...]:
    """A line for each place, as far as they are few."""
    lines = []
    for one in issues[:SHOWN]:
        rail = "" if one.rail is None else f" rail {one.rail}"
        where = f"{one.host}{rail}: " if one.host is not None else ""
        lines.append(f"{where}{one.got}{f' ({one.detail})' if one.detail else ''}")
    if len(issues) > SHOWN:
        lines.append(f"and {len(issues) - SHOWN} more places")
    return tuple(lines)


def _finding(issues: t.Sequence[Issue], order: t.Mapping[str, int], rail: int | None) -> Finding:
    first = issues[0]
    hosts = sorted({one.host for one in issues if one.host is not None}, key=lambda name: order.get(name, 0))
    placed = sorted(issues, key=lambda one: (order.get(one.host or "", 0), one.rail or 0, one.detail))
    return Finding(first.rule.id, first.rule.severity, first.pool, tuple(hosts), rail, _evidence(placed), first.got,
                   first.wanted, first.rule.fix, first.rule.source)


def group(issues: t.Iterable[Issue], order: t.Mapping[str, int]) -> list[Finding]:
    """``order`` is the place of each host in the inventory. One finding has one rail, or none in particular."""
    same: dict[tuple[t.Any, ...], list[Issue]] = {}
    for one in issues:
        same.setdefault((one.rule.id, one.pool, one.rail, one.got, one.wanted), []).append(one)
    # All rails of the same hosts: one finding without a rail.
    rails: dict[tuple[t.Any, ...], list[tuple[int | None, list[Issue]]]] = {}
    for (rule, pool, rail, got, wanted), found in same.items():
        hosts = tuple(sorted({item.host or "" for item in found}))
        rails.setdefault((rule, pool, got, wanted, hosts), []).append((rail, found))
    findings = []
    for entries in rails.values():
        one_rail = entries[0][0] if len(entries) == 1 else None
        findings.append(_finding([issue for _rail, found in entries for issue in found], order, one_rail))
    return sorted(findings, key=lambda one: (
        SEVERITIES.index(one.severity), one.pool, one.id, [order.get(name, 0) for name in one.hosts],
        -1 if one.rail is None else one.rail, one.got, one.wanted, one.evidence))
