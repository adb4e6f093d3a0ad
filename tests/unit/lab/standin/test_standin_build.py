# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from lab import builder, layer
from lab.instance import LabError
from lab.standin import build

CGROUP = Path("/nonexistent")
IMAGE = Path("/cache/image-0123456789abcdef")


@pytest.fixture()
def source(tmp_path: Path) -> Path:
    file = tmp_path / "ring.c"
    file.write_text("int main(void) { return 0; }\n")
    return file


def test_key_changes_with_all_that_goes_in(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.key(IMAGE, [source])
    assert build.key(IMAGE, [source]) == first
    assert build.key(Path("/cache/image-fedcba9876543210"), [source]) != first
    assert build.key(Path("/elsewhere") / IMAGE.name, [source]) == first
    renamed = source.rename(source.with_name("wire.c"))
    assert build.key(IMAGE, [renamed]) != first
    renamed.write_text("int main(void) { return 1; }\n")
    source.write_text("int main(void) { return 1; }\n")
    assert build.key(IMAGE, [source]) != first
    before = build.key(IMAGE, [source])
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-O3"))
    assert build.key(IMAGE, [source]) != before


def test_sources_are_all_there_and_short() -> None:
    names = {file.name for file in build.sources()}
    assert {"nccl_standin.c", "ring.c", "wire.c", "standin.h"} <= names
    assert all(len(file.read_text().splitlines()) < 300 for file in build.sources())


def fake_run(what: str, lower: tuple[Path, ...], work: Path, body: str, log: Path, cgroup: Path) -> None:
    assert lower == (IMAGE,)
    assert (work / "source" / "ring.c").exists()
    for folder in build.FOLDERS:
        (work / folder / build.PROGRAMS[0]).write_text(folder)


def test_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(layer, "run", fake_run)
    done = build.ensure(tmp_path, IMAGE, CGROUP, said.append)
    assert done == build.path(tmp_path, IMAGE)
    assert sorted(path.name for path in done.iterdir()) == ["bin", "bin-mpich"]
    for folder in done.iterdir():
        assert sorted(path.name for path in folder.iterdir()) == sorted(build.PROGRAMS)
        assert all((folder / name).read_text() == folder.name for name in build.PROGRAMS)
    assert len(said) == 2

    monkeypatch.setattr(layer, "run", None)
    assert build.ensure(tmp_path, IMAGE, CGROUP, said.append) == done
    assert len(said) == 2


def test_a_failed_build_says_why_and_is_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def popen(argv: list[str], stdout: object, **_options: object) -> object:
        class Failed:
            def wait(self, timeout: float = 0) -> int:
                return 100

            def kill(self) -> None:
                pass

        (tmp_path / "standin.log").write_text("reading\nE: Unable to locate package gcc\n")
        return Failed()

    monkeypatch.setattr(builder.subprocess, "Popen", popen)
    with pytest.raises(LabError, match=r"(?s)exit status 100.*standin.log:.*Unable to locate package gcc"):
        build.ensure(tmp_path, IMAGE, CGROUP, lambda _text: None)
    assert not build.path(tmp_path, IMAGE).exists()
    build.sweep(tmp_path)
    assert list(tmp_path.glob("standin-*")) == []


def test_sweep_leaves_a_running_build_alone(tmp_path: Path) -> None:
    build.sweep(tmp_path / "missing")
    part, done = tmp_path / "standin-aa.part", tmp_path / "standin-bb"
    part.mkdir()
    done.mkdir()
    with open(tmp_path / "standin.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build.sweep(tmp_path)
        assert part.exists()
    build.sweep(tmp_path)
    assert not part.exists()
    assert done.exists()
