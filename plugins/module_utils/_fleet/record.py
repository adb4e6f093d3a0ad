# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The fleet record: one JSON file per host and kind of facts, in the controller's state directory."""
from __future__ import annotations

import re
import typing as t
from datetime import datetime, timezone

SCHEMA_VERSION = 1
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# Also a file name: no separator, no leading dot or dash, room for ".json" and a temporary's suffix in 255 bytes.
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,199}")


class RecordError(Exception):
    """A record or its name is not what it should be; the message says which and why."""


def check_name(name: str, what: str) -> str:
    """The name, if it can be a file name."""
    if not _SAFE_NAME.fullmatch(name):
        raise RecordError(f"{what} {name[:80]!r} cannot be a file name in the fleet record: got other characters "
                          "than letters, digits and _.:@+-, or more than 200; rename it in the inventory")
    return name


def build(kind: str, host: str, time: str, run_id: str | None, data: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {"schema_version": SCHEMA_VERSION, "kind": kind, "host": host, "time": time, "run_id": run_id,
            "data": dict(data)}


def check(record: t.Any, kind: str, host: str) -> dict[str, t.Any]:
    """The record, if it is one of this version, kind and host."""
    if not isinstance(record, dict):
        raise RecordError(f"got {type(record).__name__}, wanted an object")
    wanted = {"schema_version": SCHEMA_VERSION, "kind": kind, "host": host}
    for key, value in wanted.items():
        if record.get(key) != value:
            raise RecordError(f"{key}: got {record.get(key)!r}, wanted {value!r}")
    if not isinstance(record.get("data"), dict):
        raise RecordError(f"data: got {type(record.get('data')).__name__}, wanted an object")
    return record


def age_seconds(record: t.Mapping[str, t.Any], now: datetime) -> float | None:
    """How long ago the record was made; None where it has no sound time."""
    try:
        made = datetime.strptime(record["time"], TIME_FORMAT).replace(tzinfo=timezone.utc)
    except (KeyError, TypeError, ValueError):
        return None
    return (now - made).total_seconds()


def age_text(seconds: float | None) -> str:
    """``12s``, ``3min``, ``5h``, ``7d``; no space, as the table's cells have none."""
    if seconds is None:
        return "?"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"
