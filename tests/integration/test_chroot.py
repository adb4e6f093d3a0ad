# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The namespaces that tier py39 and make fresh run in, on the Debian 11 root of tier py39."""
from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from lab.debian import ensure
from lab.state import state_dir
from tests.py39.__main__ import PYTHON39
from tools.chroot import TIMED_OUT, Bind, Room, run

# A process in a session of its own that shows that it lives.
BUSY = "setsid sh -c 'while :; do date >/out/alive; sleep 0.1; done' & sleep 60"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@pytest.fixture(scope="module")
def root() -> Path:
    cache = state_dir(create=True) / "cache"
    cache.mkdir(exist_ok=True)
    return ensure(cache, PYTHON39, print)


@pytest.fixture
def room(root: Path, tmp_path: Path) -> Room:
    for name in ("layer", "out", "in"):
        (tmp_path / name).mkdir()
    return Room(lower=root, layer=tmp_path / "layer", hostname="room", files={"/given": b"text\n"},
                binds=(Bind(tmp_path / "out", "/out", read_only=False), Bind(tmp_path / "in", "/in")))


def shell(room: Room, script: str, seconds: float = 30) -> int:
    return run(room, ["sh", "-euc", script], ENVIRONMENT, "/", seconds)


def test_what_is_seen_inside(room: Room, tmp_path: Path) -> None:
    assert shell(room, """
        hostname >/out/name; cat /given >/out/given; ls -d /proc/[0-9]* | wc -l >/out/processes
        ls /sys/class/net | tr '\\n' ' ' >/out/net; ping -c1 -W1 127.0.0.1 >/dev/null; python3 -V >/out/version
        if touch /in/x 2>/dev/null; then exit 9; fi
        touch /root/written /tmp/written; echo >/dev/null; test -c /dev/fuse""") == 0
    out = {path.name: path.read_text(encoding="utf-8").strip() for path in (tmp_path / "out").iterdir()}
    assert out.pop("version").startswith("Python 3.9.")
    # PID 1, the shell and the end of the pipeline.
    assert int(out.pop("processes")) <= 5
    assert out == {"name": "room", "given": "text", "net": "lo"}


def test_nothing_is_written_to_the_root_and_no_mount_is_left(room: Room, root: Path, tmp_path: Path) -> None:
    assert shell(room, "touch /usr/written; rm /etc/debian_version") == 0
    assert not (root / "usr/written").exists() and (root / "etc/debian_version").exists()
    assert list((tmp_path / "layer").iterdir()) == []
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text(encoding="utf-8")


def test_exit_status(room: Room) -> None:
    assert shell(room, "exit 7") == 7
    assert shell(room, "kill -9 $$") == 128 + 9


def test_time_out_ends_all_that_runs_inside(room: Room, tmp_path: Path) -> None:
    start = time.monotonic()
    assert shell(room, BUSY, seconds=2) == TIMED_OUT
    assert time.monotonic() - start < 20
    stays_quiet(tmp_path / "out" / "alive")


def stays_quiet(file: Path) -> None:
    """Nobody writes ``file`` any more."""
    assert file.exists()
    file.unlink()
    time.sleep(1)
    assert not file.exists()


def test_nothing_runs_on_when_the_caller_is_killed(room: Room, tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        shell(room, BUSY)
        os._exit(0)
    deadline = time.monotonic() + 20
    while not (tmp_path / "out" / "alive").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    time.sleep(1)
    stays_quiet(tmp_path / "out" / "alive")
