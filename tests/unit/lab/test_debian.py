# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab import debian

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
    assert debian.sources("trixie", machine) == text.replace("bookworm", "trixie")


def test_no_debian_mirror_leaves_the_choice_to_mmdebstrap(machine: Path) -> None:
    assert debian.sources("trixie", machine) is None
    (machine / "os-release").write_text(RELEASE.format(id="ubuntu", codename="noble"), encoding="utf-8")
    (machine / "sources.list").write_text("deb http://mirror.example/ubuntu noble main\n", encoding="utf-8")
    assert debian.sources("trixie", machine) is None


@pytest.mark.parametrize(("name", "text", "wanted"), [
    ("sources.list.d/debian.sources",
     DEB822 + "Signed-By: /k.gpg\n\n" + DEB822.replace("debian", "debian-security").replace(
         "bookworm bookworm-updates", "bookworm-security"),
     "Types: deb\nURIs: http://mirror.example/debian\nSuites: bullseye\nComponents: main\nSigned-By: /k.gpg\n"),
    ("sources.list",
     "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n"
     "deb http://mirror.example/debian bookworm-updates main\n"
     "deb http://mirror.example/security bookworm-security main\n"
     "# deb http://other.example/debian bookworm main\n",
     "deb [signed-by=/k.gpg] http://mirror.example/debian bullseye main\n"),
])
def test_only_the_suite_itself_when_its_updates_live_elsewhere(machine: Path, name: str, text: str,
                                                               wanted: str) -> None:
    file = machine / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    assert debian.sources("bullseye", machine, only=True) == wanted


def test_mirror_of_the_user_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(debian.MIRROR_VARIABLE, raising=False)
    assert debian.mirror_argument(None, tmp_path) == ""
    assert debian.mirror_argument(DEB822, tmp_path) == str(tmp_path / "mirror.sources")
    assert (tmp_path / "mirror.sources").read_text(encoding="utf-8") == DEB822
    assert debian.mirror_argument(ONE_LINE, tmp_path) == str(tmp_path / "mirror.list")
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://own.example/debian")
    assert debian.mirror_argument(DEB822, tmp_path) == "http://own.example/debian"


def test_path_of_a_root_changes_with_what_goes_in(tmp_path: Path) -> None:
    root = debian.Root("r", "bullseye", ("python3",))
    assert root.path(tmp_path) == debian.Root("r", "bullseye", ("python3",)).path(tmp_path)
    others = {debian.Root("r", "bullseye", ("python3", "git")).path(tmp_path),
              debian.Root("r", "bookworm", ("python3",)).path(tmp_path)}
    assert root.path(tmp_path) not in others and len(others) == 2
