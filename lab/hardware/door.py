# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control door: how the lab outside changes a running host's hardware model.

A unix socket in the host's folder, out of the host's reach. One connection is one JSON object and one JSON answer,
``{"ok": ...}`` or ``{"error": TEXT}``. The FUSE loop has one thread and the door another; the lock that ``serve``
gets is the one the FUSE operations take.
"""
from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from lab.hardware.state import Event, State, StateError

LONGEST_REQUEST = 1 << 16


class DoorError(Exception):
    """The model did not do it; the message says what was asked and what came back."""


DEEDS: dict[str, Callable[..., Any]] = {
    "show": lambda state: state.show(),
    "register": lambda state, rail, name, value: state.set_register(rail, name, value),
    "parameter": lambda state, rail, name, value: state.set_parameter(rail, name, value),
    "delivered": lambda state, rail, name, value: state.load_parameter(rail, name, value),
    "change": lambda state, rail, fields: state.change(rail, fields),
    "stack": lambda state, name: state.set_stack(name),
    "hold": lambda state, name, uses: state.hold(name, uses),
    "lose": lambda state, rail: state.lose(rail),
    "gpu": lambda state, gpu, condition: state.set_gpu(gpu, condition),
    "gpus": lambda state: state.gpus.show(),
    "find": lambda state, rail: state.find(rail),
    "driver": lambda state, loaded: state.load(loaded),
    "event": lambda state, event: state.happen(Event(event)),
}


def answer(state: State, text: bytes) -> dict[str, Any]:
    """One request to its answer; nothing that comes in ends the daemon."""
    try:
        request = dict(json.loads(text))
        deed = request.pop("do", None)
        if deed not in DEEDS:
            return {"error": f"do: got {deed!r}, wanted one of {', '.join(DEEDS)}"}
        return {"ok": DEEDS[deed](state, **request)}
    except (StateError, ValueError, TypeError, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def serve(path: Path, state: State, lock: AbstractContextManager[Any]) -> None:
    """Open the door; a thread answers until the process ends."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen()

    def loop() -> None:
        while True:
            connection, _address = listener.accept()
            with connection:
                try:
                    connection.settimeout(5)
                    text = _receive(connection)
                    with lock:
                        done = answer(state, text)
                    connection.sendall(json.dumps(done).encode())
                except OSError:
                    continue  # the other side went away

    threading.Thread(target=loop, name="door", daemon=True).start()


def _receive(connection: socket.socket) -> bytes:
    parts = b""
    while len(parts) < LONGEST_REQUEST:
        part = connection.recv(1 << 12)
        if not part:
            break
        parts += part
    return parts


def ask(path: Path, request: dict[str, Any], seconds: float = 5.0) -> Any:
    """Ask the model behind ``path``; a daemon that is just starting is waited for."""
    deadline = time.monotonic() + seconds
    while True:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            try:
                connection.connect(str(path))
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if time.monotonic() > deadline:
                    raise DoorError(f"{path}: no hardware model answers: {error}") from None
                time.sleep(0.02)
                continue
            try:
                connection.sendall(json.dumps(request).encode())
                connection.shutdown(socket.SHUT_WR)
                got = json.loads(_receive(connection) or b"{}")
            except (OSError, ValueError) as error:
                raise DoorError(f"{path}: {request}: {error}") from error
        if "ok" not in got:
            raise DoorError(f"{path}: {request}: {got.get('error', 'the model closed the door')}")
        return got["ok"]
