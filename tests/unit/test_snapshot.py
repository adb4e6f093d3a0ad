# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The snapshot's parts on folders of this machine; whole hosts: tests/integration/test_lab_plugin.py"""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import snapshot
from tests.snapshot import difference


def test_a_file_that_was_put_back_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one", encoding="utf-8")
    (tmp_path / "noise").mkdir()
    before, times = snapshot.root_files(str(tmp_path), (str(tmp_path / "noise"),)), file.stat()
    (tmp_path / "noise" / "x").touch()
    assert snapshot.root_files(str(tmp_path), (str(tmp_path / "noise"),)).keys() == before.keys()
    file.write_text("two", encoding="utf-8")
    file.write_text("one", encoding="utf-8")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = snapshot.root_files(str(tmp_path), (str(tmp_path / "noise"),))
    assert [line.split(":")[0] for line in difference(before, after)] == [str(file)]


def test_values_of_devices_and_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "real" / "statistics").mkdir(parents=True)
    (tmp_path / "class").mkdir()
    for name in ("one", "two"):
        (tmp_path / "class" / name).symlink_to(tmp_path / "real")
    (tmp_path / "real" / "mtu").write_text("1500\n", encoding="ascii")
    (tmp_path / "real" / "statistics" / "rx_bytes").write_text("1\n", encoding="ascii")
    (tmp_path / "real" / "unreadable").symlink_to(tmp_path / "gone")
    assert snapshot.devices((str(tmp_path / "class"), str(tmp_path / "none"))) == {
        str(tmp_path / "real" / "mtu"): b"1500\n".hex(), str(tmp_path / "real" / "unreadable"): "errno 2"}


def test_outputs() -> None:
    found = snapshot.outputs((("echo", "user@1000.service\nx 1"), ("no-such-command", "x")))
    assert found == {"echo user@1000.service\nx 1: x 1": "there", "no-such-command x": "no such command"}


def test_difference() -> None:
    assert difference({"a": "1", "b": "1"}, {"a": "1", "b": "1"}) == []
    assert difference({"a": "1", "b": "1"}, {"b": "2", "c": "3"}) == [
        "a: 1 -> not there", "b: 1 -> 2", "c: not there -> 3"]


def test_a_snapshot_that_sees_little_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(text: str, code: int = 0) -> None:
        def run(argv: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
            return subprocess.CompletedProcess(argv, code, text, "why")
        monkeypatch.setattr(snapshot.subprocess, "run", run)

    full = {f"{kind}{number}": "x" for kind, least in snapshot.LEAST.items() for number in range(least)}
    answer(json.dumps(full))
    assert snapshot.take("lab", "one") == full
    for kind in snapshot.LEAST:
        answer(json.dumps({key: value for key, value in full.items() if key != f"{kind}0"}))
        with pytest.raises(RuntimeError, match=f"one: snapshot: got .* of {kind}, wanted at least"):
            snapshot.take("lab", "one")
    answer("", 1)
    with pytest.raises(RuntimeError, match="one: snapshot: exit status 1: why"):
        snapshot.take("lab", "one")


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    states = {"one": {"a": "1"}, "two": {"a": "1"}}
    monkeypatch.setattr(snapshot, "take", lambda lab, host: states[host])
    assert snapshot.main(["take", "lab", str(tmp_path), "one", "two"]) == 0
    assert snapshot.main(["compare", "lab", str(tmp_path), "one", "two"]) == 0
    states["one"] = {"a": "2"}
    assert snapshot.main(["compare", "lab", str(tmp_path), "one", "two"]) == 1
    assert "one: 1 entries, 1 differ\na: 1 -> 2" in capsys.readouterr().out
    assert snapshot.main(["compare", "lab", str(tmp_path)]) == 2
