# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab import state


def test_default_and_override(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(state.VARIABLE, raising=False)
    assert state.state_dir() == Path("/var/lib/aidc-lab")
    monkeypatch.setenv(state.VARIABLE, "/tmp/aidc-x")
    assert state.state_dir() == Path("/tmp/aidc-x")


@pytest.mark.parametrize("value", ["relative/path", "/" + "x" * state.LONGEST])
def test_bad_path_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(state.VARIABLE, value)
    with pytest.raises(state.StateError, match="absolute path of at most"):
        state.state_dir()


def test_overlay_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = Path("/tmp/aidc-never-made")
    monkeypatch.setenv(state.VARIABLE, str(target))
    monkeypatch.setattr(state, "filesystem_of", lambda path: "overlay")
    with pytest.raises(state.StateError, match="overlay file system"):
        state.state_dir(create=True)
    assert not target.exists()


def test_filesystem_of_real_mounts() -> None:
    assert state.filesystem_of(Path("/proc/self/status")) == "proc"
    assert state.filesystem_of(Path("/sys/class/does/not/exist")) == "sysfs"
