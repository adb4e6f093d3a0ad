# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab import image

RELEASE = 'NAME="X"\nID={id}\nVERSION_CODENAME={codename}\n'
DEB822 = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"
ONE_LINE = "deb http://mirror.example/debian bookworm main\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real = Path.read_text

    def read_text(self: Path, *args: object, **kwargs: object) -> str:
        target = tmp_path / "os-release" if str(self) == "/etc/os-release" else self
        return real(target, encoding="utf-8")

    monkeypatch.setattr(Path, "read_text", read_text)
    (tmp_path / "os-release").write_text(RELEASE.format(id="debian", codename="bookworm"), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("name", "text"), [("sources.list.d/debian.sources", DEB822), ("sources.list", ONE_LINE)])
def test_own_mirror_is_used_with_the_suite_renamed(machine: Path, name: str, text: str) -> None:
    file = machine / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    assert image.sources(machine) == text.replace("bookworm", image.SUITE)


def test_no_debian_mirror_leaves_the_choice_to_mmdebstrap(machine: Path) -> None:
    assert image.sources(machine) is None
    (machine / "os-release").write_text(RELEASE.format(id="ubuntu", codename="noble"), encoding="utf-8")
    (machine / "sources.list").write_text("deb http://mirror.example/ubuntu noble main\n", encoding="utf-8")
    assert image.sources(machine) is None


def test_key_changes_with_what_goes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    before = image.key()
    assert before == image.key()
    monkeypatch.setattr(image, "OPTIONS", (*image.OPTIONS, "--include=vim"))
    assert image.key() != before
