# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read what the audit needs from the fleet record, host by host; keep and write its report."""
from __future__ import annotations

import contextlib
import gc
import json
import typing as t
from datetime import datetime
from pathlib import Path

from .._fleet import record as records
from .._fleet.record import RecordError
from .._host.files import write_atomic
from . import report
from .derive_host import KINDS, complete, host
from .expect import HostWant
from .facts import Host

REPORT, EXPECT = "audit/audit.json", "audit/expect.json"
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
_MAIN, _STAND_IN = "mlx5_info", "roce_qos"


@contextlib.contextmanager
def uncollected() -> t.Iterator[None]:
    """Without the collector of cycles: there are none, and it would walk millions of values again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _record(path: str, kind: str, name: str) -> dict[str, t.Any] | None:
    """None where there is none."""
    try:
        with open(path, "rb") as stream:
            return records.check(json.loads(stream.read()), kind, name)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"its record of {kind} cannot be read: {error}") from error


def read_host(state_dir: str, want: HostWant, now: datetime) -> Host:
    """A record that cannot be read is none, with the reason; the other hosts are audited all the same."""
    data: dict[str, t.Any] = {}
    main, why = None, ""
    for kind in KINDS:
        if kind == _STAND_IN and complete(data.get(_MAIN, {})):
            continue
        try:
            record = _record(f"{state_dir}/{kind}/{records.check_name(want.name, 'host name')}.json", kind, want.name)
        except RecordError as error:
            why = why or str(error)
            continue
        if record is not None:
            data[kind] = record["data"]
            main = record if kind == _MAIN else main
    return host(want, data, main, now, why)


def read(state_dir: Path, wants: t.Sequence[HostWant], now: datetime) -> dict[str, Host]:
    """In one pass. What a record has beside the values of `facts` is dropped before the next one is read."""
    with uncollected():
        return {want.name: read_host(str(state_dir), want, now) for want in wants}


def audit(state_dir: Path, wants: t.Sequence[HostWant], now: datetime) -> dict[str, t.Any]:
    """Read and judge."""
    with uncollected():
        return report.audit(wants, read(state_dir, wants, now), now)


def write(path: Path, document: t.Mapping[str, t.Any]) -> None:
    """Raises OSError."""
    write_atomic(path, json.dumps(document, indent=1) + "\n", FILE_MODE, DIRECTORY_MODE)
