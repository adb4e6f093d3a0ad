# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read and write the fleet record on the controller."""
from __future__ import annotations

import json
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from .._host.files import write_atomic
from . import record as records
from .record import RecordError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def store(state_dir: Path, kind: str, host: str, data: t.Mapping[str, t.Any], run_id: str | None) -> Path:
    """Put the host's record in place and return its path."""
    path = state_dir / records.check_name(kind, "kind") / f"{records.check_name(host, 'host name')}.json"
    time = datetime.now(timezone.utc).strftime(records.TIME_FORMAT)
    text = json.dumps(records.build(kind, host, time, run_id, data), indent=1, sort_keys=True) + "\n"
    try:
        write_atomic(path, text, FILE_MODE, DIRECTORY_MODE)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}; check the variable aidc_state_dir") from error
    return path


def load(state_dir: Path, kind: str) -> dict[str, dict[str, t.Any]]:
    """All records of a kind by host, in one pass; empty where nothing was stored yet."""
    folder = state_dir / records.check_name(kind, "kind")
    found = {}
    for path in sorted(folder.glob("*.json")):
        # A temporary of a writer that is at work, or was killed.
        if path.name.startswith("."):
            continue
        try:
            found[path.stem] = records.check(json.loads(path.read_text(encoding="utf-8")), kind, path.stem)
        except (OSError, ValueError, RecordError) as error:
            raise RecordError(f"{path}: {error}; remove it and run again") from error
    return found


def load_one(state_dir: Path, kind: str, host: str) -> dict[str, t.Any] | None:
    """The record of one host; None where it has none yet."""
    path = state_dir / records.check_name(kind, "kind") / f"{records.check_name(host, 'host name')}.json"
    try:
        return records.check(json.loads(path.read_text(encoding="utf-8")), kind, host)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"{path}: {error}; remove it and run again") from error
