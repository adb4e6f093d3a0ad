# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

from lab.faults import files


def tree(path: Path) -> dict[str, tuple[str, int, int]]:
    found = {}
    for item in sorted(path.rglob("*")):
        about = item.lstat()
        content = os.readlink(item) if item.is_symlink() else "" if item.is_dir() else item.read_text(encoding="utf-8")
        found[str(item.relative_to(path))] = (content, about.st_mode, 0 if item.is_symlink() else about.st_mtime_ns)
    return found


def test_copy_tree_makes_equal_and_leaves_equal_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for base in (one, two):
        (base / "d").mkdir(parents=True)
        (base / "same").write_text("same")
        os.utime(base / "same", (5, 5))
    (one / "d/new").write_text("new")
    (one / "d/new").chmod(0o640)
    (one / "link").symlink_to("d/new")
    (one / "kind").mkdir()
    (two / "kind").write_text("was a file")
    (two / "gone").mkdir()
    (two / "gone/file").write_text("x")
    (two / "link").symlink_to("elsewhere")
    same = (two / "same").stat()
    files.copy_tree(one, two)
    assert tree(one).keys() == tree(two).keys() and tree(two)["link"][0] == "d/new"
    assert {k: v[:2] for k, v in tree(one).items()} == {k: v[:2] for k, v in tree(two).items()}
    assert (two / "d/new").stat().st_mtime_ns == (one / "d/new").stat().st_mtime_ns
    assert ((two / "same").stat().st_ino, (two / "same").stat().st_ctime_ns) == (same.st_ino, same.st_ctime_ns)
