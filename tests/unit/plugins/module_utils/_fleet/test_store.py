# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet.record import RecordError


def test_store_and_load(tmp_path: Path) -> None:
    path = store.store(tmp_path / "state", "mlx5_info", "h1", {"devices": []}, "run-7")
    assert path == tmp_path / "state" / "mlx5_info" / "h1.json"
    assert path.stat().st_mode & 0o777 == 0o600
    store.store(tmp_path / "state", "mlx5_info", "h0", {"devices": [1]}, None)
    (path.parent / ".h9.json.abc.tmp").write_text("{", encoding="utf-8")
    (path.parent / ".h9.json").write_text("{", encoding="utf-8")
    found = store.load(tmp_path / "state", "mlx5_info")
    assert list(found) == ["h0", "h1"]
    assert (found["h1"]["run_id"], found["h1"]["data"]) == ("run-7", {"devices": []})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["h1"]["time"])


def test_load_of_nothing(tmp_path: Path) -> None:
    assert store.load(tmp_path / "none", "mlx5_info") == {}


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"schema_version": 1})])
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mlx5_info").mkdir()
    (tmp_path / "mlx5_info" / "h1.json").write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=r"mlx5_info/h1\.json: .*; remove it and run again"):
        store.load(tmp_path, "mlx5_info")


def test_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="host name '../h'"):
        store.store(tmp_path, "mlx5_info", "../h", {}, None)
    with pytest.raises(RecordError, match="kind"):
        store.load(tmp_path, "../x")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match="check the variable aidc_state_dir"):
        store.store(tmp_path / "file", "mlx5_info", "h1", {}, None)


def test_one_record(tmp_path: Path) -> None:
    assert store.load_one(tmp_path, "roce_gid", "h1") is None
    store.store(tmp_path, "roce_gid", "h1", {"a": 1}, None)
    found = store.load_one(tmp_path, "roce_gid", "h1")
    assert found is not None and found["data"] == {"a": 1}
    (tmp_path / "roce_gid" / "h1.json").write_text("[]", encoding="utf-8")
    with pytest.raises(RecordError, match=r"h1\.json: .*; remove it and run again"):
        store.load_one(tmp_path, "roce_gid", "h1")
