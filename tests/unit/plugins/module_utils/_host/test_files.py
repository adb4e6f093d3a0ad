# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host import files


def test_write_creates_folders_with_explicit_modes(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.conf"
    old = os.umask(0o077)
    try:
        files.write_atomic(target, "text\n", 0o644)
    finally:
        os.umask(old)
    assert target.read_text(encoding="utf-8") == "text\n"
    assert target.stat().st_mode & 0o777 == 0o644
    assert os.listdir(target.parent) == ["b.conf"]


def test_write_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("keep", encoding="utf-8")
    (tmp_path / "link").symlink_to("other")
    files.write_atomic(tmp_path / "link", "new", 0o600)
    assert (tmp_path / "other").read_text(encoding="utf-8") == "keep"
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    (tmp_path / "f").write_text("old", encoding="utf-8")

    def broken(descriptor: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(type(error)):
        files.write_atomic(tmp_path / "f", "new", 0o600)
    assert os.listdir(tmp_path) == ["f"]
    assert files.read_text(tmp_path / "f") == "old"


def test_read_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert files.read_text(tmp_path / "none") is None
    assert files.read_text(tmp_path / "dangling") is None
    assert files.read_text(tmp_path / "file" / "below") is None


def test_remove_twice(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x", encoding="utf-8")
    files.remove(tmp_path / "f")
    files.remove(tmp_path / "f")
    assert os.listdir(tmp_path) == []
