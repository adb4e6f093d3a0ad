# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The pools' reports on the controller: POOL.json, POOL.log and, after a search, POOL.search.json and POOL.html."""
from __future__ import annotations

import json
import re
import typing as t
from datetime import datetime, timedelta, timezone
from pathlib import Path

from .._host.files import read_text, remove, write_atomic
from .report import NOT_TESTED, SCHEMA_VERSION

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# No pool can have this name: a pool's has no dot.
JUNIT = "gate.junit.xml"
SEARCH = ".search.json"
_POOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


class StoreError(Exception):
    """A report cannot be written; the message names the file and the reason."""


def _path(folder: Path, pool: str, suffix: str) -> Path:
    if not _POOL.fullmatch(pool):
        raise StoreError(f"pool {pool!r} cannot be a file name: wanted letters, digits, - and _; set nccl_gate_pool")
    return folder / f"{pool}{suffix}"


def write(folder: Path, record: t.Mapping[str, t.Any], log: str) -> Path:
    """Put the record in place; the log too, or none, so that no older one stands beside it."""
    path = _path(folder, record["pool"], ".json")
    text = json.dumps(record, indent=1, sort_keys=True, default=str) + "\n"
    try:
        write_atomic(path, text, FILE_MODE, DIRECTORY_MODE)
        if log:
            write_atomic(path.with_suffix(".log"), log, FILE_MODE, DIRECTORY_MODE)
        else:
            remove(path.with_suffix(".log"))
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; check nccl_gate_report_dir") from error
    return path


def write_page(folder: Path, pool: str, text: str) -> None:
    """The page of the search for the culprit; without a search none, so that no older one stands there."""
    path = _path(folder, pool, ".html")
    try:
        if text:
            write_atomic(path, text, FILE_MODE, DIRECTORY_MODE)
        else:
            remove(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; check nccl_gate_report_dir") from error


# -- the search for the culprit -------------------------------------------------------------------------


def write_search(folder: Path, pool: str, case: t.Mapping[str, t.Any], now: datetime) -> Path:
    """The search as far as it is: what a killed controller leaves, and what `report CASE` of the command line reads."""
    path = _path(folder, pool, SEARCH)
    text = json.dumps({**case, "time": now.strftime(TIME_FORMAT)}, indent=1, sort_keys=True) + "\n"
    try:
        write_atomic(path, text, FILE_MODE, DIRECTORY_MODE)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; check nccl_gate_report_dir") from error
    return path


def read_search(folder: Path, pool: str, now: datetime) -> tuple[dict[str, t.Any] | None, float]:
    """What is stored of the pool's last search, and how many seconds ago; None for anything that is not one."""
    try:
        stored = json.loads(read_text(_path(folder, pool, SEARCH)) or "")
        time = datetime.strptime(stored["time"], TIME_FORMAT).replace(tzinfo=timezone.utc)
    except (ValueError, OSError, KeyError, TypeError):
        return None, 0.0
    return stored, (now - time).total_seconds()


def forget_search(folder: Path, pool: str) -> None:
    """A pool that has passed has nothing to look for any more."""
    path = _path(folder, pool, SEARCH)
    if path.exists():
        remove(path)


def write_junit(folder: Path, text: str) -> Path:
    """All pools of this run in one file, for CI."""
    path = folder / JUNIT
    try:
        write_atomic(path, text, FILE_MODE, DIRECTORY_MODE)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; check nccl_gate_report_dir") from error
    return path


def _no_report(pool: str, reason: str) -> dict[str, t.Any]:
    return {"schema_version": SCHEMA_VERSION, "pool": pool, "hosts": [], "state": "INCOMPLETE", "label": "INCOMPLETE",
            "stage": "report", "reason": reason, "passed": False, "simulated": False}


def _read(path: Path) -> dict[str, t.Any] | None:
    try:
        record = json.loads(read_text(path) or "")
    except (ValueError, OSError):
        return None
    needed = {"pool", "hosts", "state", "label", "stage", "reason", "passed", "time"}
    sound = isinstance(record, dict) and record.get("schema_version") == SCHEMA_VERSION and needed <= set(record)
    return record if sound else None


def verified(folder: Path, pool: str, now: datetime, max_age_days: int) -> dict[str, t.Any]:
    """The last record, if it is one and not too old; else a record that says why there is none."""
    path = _path(folder, pool, ".json")
    if not path.exists():
        return _no_report(pool, f"no report in {folder}: the pool was never tested from this controller")
    record = _read(path)
    if record is None or record["pool"] != pool:
        return _no_report(pool, f"{path} is no report of this version; run the gate again")
    try:
        time = datetime.strptime(record["time"], TIME_FORMAT).replace(tzinfo=timezone.utc)
    except (ValueError, TypeError):
        return _no_report(pool, f"{path} has no valid time")
    if record["state"] != NOT_TESTED and now - time > timedelta(days=max_age_days):
        return _no_report(pool, f"the report of {record['time']} is older than {max_age_days} days")
    return record
