# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from lab.hardware import door
from lab.hardware.spec import node_spec
from lab.hardware.state import State


def test_requests_change_the_state_and_errors_come_back(tmp_path: Path) -> None:
    state, lock, path = State(node_spec("l40s", "h", 1)), threading.Lock(), tmp_path / "door"
    door.serve(path, state, lock)
    assert path.stat().st_mode & 0o777 == 0o600
    assert door.ask(path, {"do": "lose", "rail": 1}) is None
    assert [rail["on_bus"] for rail in door.ask(path, {"do": "show"})] == [True, False]
    for request, text in (({"do": "dance"}, "got 'dance', wanted one of show"), ({"do": "lose"}, "missing 1 required"),
                          ({"do": "event", "event": "quake"}, "quake"), ({"do": "lose", "rail": 7}, "0 to 1")):
        with pytest.raises(door.DoorError, match=text):
            door.ask(path, request)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        raw.sendall(b"\xff{")
        raw.shutdown(socket.SHUT_WR)
        assert b'"error"' in raw.recv(1000)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))  # says nothing and goes
    assert door.ask(path, {"do": "find", "rail": 1}) is None


def test_the_door_waits_for_the_model_lock(tmp_path: Path) -> None:
    state, lock, path = State(node_spec("l40s", "h", 1)), threading.Lock(), tmp_path / "door"
    door.serve(path, state, lock)
    with lock:
        asking = threading.Thread(target=door.ask, args=(path, {"do": "lose", "rail": 0}))
        asking.start()
        time.sleep(0.1)
        assert state.on_bus(0)
    asking.join(5)
    assert not state.on_bus(0)


def test_a_door_that_nobody_opens(tmp_path: Path) -> None:
    with pytest.raises(door.DoorError, match="no hardware model answers"):
        door.ask(tmp_path / "door", {"do": "show"}, seconds=0.1)
