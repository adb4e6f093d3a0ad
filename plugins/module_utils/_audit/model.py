# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Rules and findings of the audit."""
from __future__ import annotations

import typing as t

Severity = t.Literal["error", "warning", "note"]
Scope = t.Literal["rail", "host", "uniform", "unique", "path"]
# (value, operator, wanted)
Check = tuple[str, str, t.Any]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Rule(t.NamedTuple):
    """See `rules.py`."""

    id: str
    severity: Severity
    scope: Scope
    check: Check
    got: str
    wanted: str
    fix: str
    source: str
    when: tuple[Check, ...] = ()
    unless: tuple[str, ...] = ()


class Finding(t.NamedTuple):
    """``hosts`` is in the order of the inventory. Without hosts nobody is blamed: a pool that is split in two."""

    id: str
    severity: Severity
    pool: str
    hosts: tuple[str, ...]
    rail: int | None
    evidence: tuple[str, ...]
    got: str
    wanted: str
    fix: str
    source: str
