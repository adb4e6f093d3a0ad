# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A run, as its hosts remember it: who started it, which host leads it, and whether it is still alive.

Pure. Each host of a run keeps one record per run. A run is alive on a host while the process that
works for it lives, or, before there is one, until the time in the record. So a run whose controller
was killed ends by itself, and nobody has to be asked whether it still counts.
"""
from __future__ import annotations

import dataclasses
import json
import re
import typing as t
from dataclasses import dataclass

# Every process of a run carries this in its environment; that is how strays are found.
MARK_VARIABLE = "AIDC_NCCL_RUN_ID"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{2,63}")
# Between the run and the part of it, where several launches share the key of one run.
PART_SEPARATOR = "."
SCHEMA_VERSION = 1


def mark_of(run_id: str, part: str = "") -> str:
    """What the processes of a launch carry in MARK_VARIABLE."""
    return f"{run_id}{PART_SEPARATOR}{part}" if part else run_id


def run_of_mark(mark: str) -> str:
    return mark.partition(PART_SEPARATOR)[0]


@dataclass(frozen=True)
class Record:
    """``until``: seconds since 1970; ``host`` is the host name where the record was written, which tells a
    home directory that several hosts share. ``head`` is the inventory's name of the host that leads the run."""

    run_id: str
    head: str
    holder: str
    until: float
    host: str
    boot_id: str
    pid: int | None = None
    pid_start: str = ""
    finished: bool = False

    def text(self) -> str:
        return json.dumps({"schema_version": SCHEMA_VERSION, **dataclasses.asdict(self)}, sort_keys=True) + "\n"

    def summary(self) -> dict[str, t.Any]:
        return {"run_id": self.run_id, "head": self.head, "holder": self.holder, "pid": self.pid}


@dataclass(frozen=True)
class Here:
    """What the host says about itself; ``start_of`` gives a process's start time, None if there is none."""

    host: str
    boot_id: str
    now: float
    start_of: t.Callable[[int], str | None]


def read_record(text: str) -> Record | None:
    """The record, or None for anything that is not one: then nothing speaks for the run."""
    try:
        data = json.loads(text)
        names = [field.name for field in dataclasses.fields(Record)]
        record = Record(**{name: data[name] for name in names if name in data})
    except (ValueError, TypeError, KeyError):
        return None
    return record if _sound(record) else None


def _sound(record: Record) -> bool:
    words = (record.run_id, record.head, record.holder, record.host, record.boot_id, record.pid_start)
    return (all(isinstance(word, str) for word in words) and RUN_ID.fullmatch(record.run_id) is not None
            and isinstance(record.until, (int, float)) and isinstance(record.finished, bool)
            and (record.pid is None or isinstance(record.pid, int)))


def is_alive(record: Record, here: Here) -> bool:
    if record.finished:
        return False
    if record.host == here.host:
        if record.boot_id != here.boot_id:
            return False
        if record.pid is not None:
            return here.start_of(record.pid) == record.pid_start
    return here.now < record.until


def is_current(record: Record, here: Here, head: str) -> bool:
    """Whether the run must be left alone by a run that ``head`` leads.

    A head takes the next run only when it has none that is alive; so on its other hosts (this one) what
    an earlier run of the same head left is dead, even if its time is not over.
    """
    return (not head or record.head != head) and is_alive(record, here)
