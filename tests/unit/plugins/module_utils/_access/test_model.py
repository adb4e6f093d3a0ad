# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.model import (
    Here,
    Record,
    is_alive,
    is_current,
    read_record,
)

RECORD = Record("run-1", "node1", "alice from 192.0.2.250", 1000.0, "node1", "boot-a")
HERE = Here("node1", "boot-a", 500.0, {7: "70"}.get)


def test_record_survives_its_file() -> None:
    record = dataclasses.replace(RECORD, pid=7, pid_start="70", finished=True)
    assert read_record(record.text()) == record


@pytest.mark.parametrize("text", ["", "x", "[]", "null", "{}", json.dumps({"run_id": "run-1"}),
                                  RECORD.text().replace("1000.0", '"soon"'), RECORD.text().replace("run-1", "../x")])
def test_what_is_no_record_is_none(text: str) -> None:
    assert read_record(text) is None


@pytest.mark.parametrize(("changes", "alive"), [
    ({}, True),
    ({"until": 499.0}, False),
    ({"finished": True}, False),
    ({"boot_id": "boot-b"}, False),
    # A process decides, whatever the time says.
    ({"pid": 7, "pid_start": "70", "until": 0.0}, True),
    ({"pid": 7, "pid_start": "71"}, False),
    ({"pid": 8, "pid_start": "70"}, False),
    # Written by another host into a shared home: only the time can tell.
    ({"host": "node9", "boot_id": "boot-z", "pid": 8}, True),
    ({"host": "node9", "boot_id": "boot-z", "pid": 8, "until": 499.0}, False),
])
def test_alive(changes: dict[str, object], alive: bool) -> None:
    assert is_alive(dataclasses.replace(RECORD, **changes), HERE) is alive  # type: ignore[arg-type]


def test_an_earlier_run_of_the_same_head_is_not_current() -> None:
    assert is_current(RECORD, HERE, "")
    assert not is_current(RECORD, HERE, "node1")
    assert is_current(RECORD, HERE, "node2")
