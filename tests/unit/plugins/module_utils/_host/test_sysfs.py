# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.sysfs import Reading, Sysfs, natural


def test_value_is_stripped_and_blank_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(" 4: ACTIVE\n", encoding="utf-8")
    (tmp_path / "b").write_text("", encoding="utf-8")
    sysfs = Sysfs(tmp_path)
    assert sysfs.read("a") == Reading("ok", "4: ACTIVE")
    assert sysfs.read("b").state == "ok"
    assert sysfs.read("b").or_none() is None


@pytest.mark.parametrize(("number", "state", "kept"), [
    (errno.EINVAL, "empty", {}),
    (errno.ENOENT, "gone", {}),
    (errno.ENODEV, "gone", {}),
    (errno.ENOTCONN, "error", {"x": "ENOTCONN"}),
    (errno.EACCES, "error", {"x": "EACCES"}),
])
def test_kinds_of_failure_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, state: str, kept: dict[str, str]
) -> None:
    def broken(self: Path, **_options: str) -> str:
        raise OSError(number, "text")

    monkeypatch.setattr(Path, "read_text", broken)
    sysfs = Sysfs(tmp_path)
    assert sysfs.read("x").state == state
    assert sysfs.errors == kept


def test_an_error_without_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Path, **_options: str) -> str:
        raise OSError("odd")

    monkeypatch.setattr(Path, "read_text", broken)
    assert Sysfs(tmp_path).read("x").error == "odd"


def test_names_links_and_numbers(tmp_path: Path) -> None:
    for name in ("10", "9", "mlx5_10", "mlx5_2"):
        (tmp_path / name).write_text("0x1003\n", encoding="utf-8")
    (tmp_path / "driver").symlink_to("../drivers/mlx5_core")
    (tmp_path / "text").write_text("words", encoding="utf-8")
    sysfs = Sysfs(tmp_path)
    assert sysfs.names(".") == ["9", "10", "driver", "mlx5_2", "mlx5_10", "text"]
    assert sysfs.names("none") == []
    assert sysfs.link_name("driver") == "mlx5_core"
    assert sysfs.link_name("none") is None
    # A file that is no link: readlink says EINVAL.
    assert sysfs.link_name("9") is None
    assert sysfs.number("9") == 0x1003
    assert sysfs.number("text") is None
    assert sysfs.errors == {}


def test_natural_order_mixes_names_and_numbers() -> None:
    assert sorted(["mlx5_10", "mlx5_bond_0", "mlx5_2"], key=natural) == ["mlx5_2", "mlx5_10", "mlx5_bond_0"]
