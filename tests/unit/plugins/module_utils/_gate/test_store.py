# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import stat
import typing as t
from datetime import datetime, timezone
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import report, store

from .test_report import TIME, hosts

NOW = datetime(2026, 1, 3, tzinfo=timezone.utc)


def record(**changes: t.Any) -> dict[str, t.Any]:
    return {**report.record("l40s", hosts(), TIME), **changes}


def test_written_and_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "gate"
    path = store.write(folder, record(), "log text")
    assert json.loads(path.read_text(encoding="utf-8")) == record()
    assert (folder / "l40s.log").read_text(encoding="utf-8") == "log text"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert store.verified(folder, "l40s", NOW, 7)["passed"]
    # A run without a log leaves no older one beside its report.
    store.write(folder, record(state="PATH", passed=False), "")
    assert not (folder / "l40s.log").exists()
    assert store.verified(folder, "l40s", NOW, 7)["state"] == "PATH"


@pytest.mark.parametrize(
    ("changes", "days", "words"),
    [
        ({}, 1, "older than 1 days"),
        ({"time": "yesterday"}, 7, "no valid time"),
        ({"time": 5}, 7, "no valid time"),
        ({"schema_version": 2}, 7, "no report of this version"),
        ({"pool": "gb200"}, 7, "no report of this version"),
    ],
)
def test_what_is_no_valid_report_is_no_pass(tmp_path: Path, changes: dict[str, t.Any], days: int, words: str) -> None:
    (tmp_path / "l40s.json").write_text(json.dumps(record(**changes)), encoding="utf-8")
    found = store.verified(tmp_path, "l40s", NOW, days)
    assert not found["passed"] and report.failed(found) and words in found["reason"]


@pytest.mark.parametrize("text", ["", "x", "[]", "{}"])
def test_rubbish_is_no_pass(tmp_path: Path, text: str) -> None:
    (tmp_path / "l40s.json").write_text(text, encoding="utf-8")
    assert report.failed(store.verified(tmp_path, "l40s", NOW, 7))


def test_no_report_is_no_pass(tmp_path: Path) -> None:
    found = store.verified(tmp_path, "l40s", NOW, 7)
    assert report.failed(found) and "never tested" in found["reason"]
    assert len(report.table([found])) == 3


@pytest.mark.parametrize("pool", ["", "..", "a/b", "../x"])
def test_a_pool_is_no_path(tmp_path: Path, pool: str) -> None:
    with pytest.raises(store.StoreError, match="nccl_gate_pool"):
        store.write(tmp_path, record(pool=pool), "")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(store.StoreError, match="nccl_gate_report_dir"):
        store.write(tmp_path / "file", record(), "")


def test_a_search_is_read_again_with_its_age_and_rubbish_is_none(tmp_path: Path) -> None:
    folder, later = tmp_path / "gate", datetime(2026, 1, 3, 0, 10, tzinfo=timezone.utc)
    assert store.read_search(folder, "l40s", NOW) == (None, 0.0)
    path = store.write_search(folder, "l40s", {"format": 1, "done": False}, NOW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    stored, age = store.read_search(folder, "l40s", later)
    assert stored is not None and stored["format"] == 1 and age == 600
    for text in ("", "[]", "{}", '{"time": 3}', "x"):
        path.write_text(text, encoding="utf-8")
        assert store.read_search(folder, "l40s", later) == (None, 0.0), text
    store.forget_search(folder, "l40s")
    store.forget_search(folder, "l40s")
    assert not path.exists()
    with pytest.raises(store.StoreError):
        store.write_search(tmp_path / "gate", "../x", {}, NOW)


def test_the_page_goes_when_there_is_no_search(tmp_path: Path) -> None:
    store.write_page(tmp_path / "gate", "l40s", "<p>")
    assert (tmp_path / "gate" / "l40s.html").read_text(encoding="utf-8") == "<p>"
    store.write_page(tmp_path / "gate", "l40s", "")
    assert not (tmp_path / "gate" / "l40s.html").exists()
