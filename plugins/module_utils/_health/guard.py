# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Run something that may hang for ever in a process of its own, and be back in time.

A read of sysfs or of a network file system can hang in the kernel, where no signal helps. So the process that slurmd
waits for never makes a check: a child makes them and sends each result, and when the time is over, the parent goes on
without it. The child has none of slurmd's pipes, as slurmd reads them to their end.
"""
from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
import typing as t

from .model import Result

TERM_SECONDS = 0.5
Send = t.Callable[[t.Sequence[str]], None]
Have = t.Callable[[Result], None]
Work = t.Callable[[Send, Have], None]


def _leave(number: int, frame: t.Any) -> t.NoReturn:
    raise SystemExit(1)


def _child(work: Work, pipe: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    # The runner ends a tool that it waits for when this exception passes it.
    signal.signal(signal.SIGTERM, _leave)

    def send(data: t.Any) -> None:
        os.write(pipe, json.dumps(data).encode() + b"\n")

    work(lambda names: send({"began": list(names)}), lambda result: send({"result": result.as_dict()}))


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + TERM_SECONDS
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)
        # It may be stuck in the kernel: not waited for, init takes it over.
        os.waitpid(pid, os.WNOHANG)


def _read(pipe: int, seconds: float) -> tuple[bytes, bool]:
    """What came, and whether the other end was closed before the time was over."""
    data, deadline = b"", time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(left):
                chunk = os.read(pipe, 65536)
                if not chunk:
                    return data, True
                data += chunk
    return data, False


def _results(data: bytes, names: t.Sequence[str], ended: bool, seconds: float) -> list[Result]:
    """Those that came, what hung, and that nothing is known of the rest."""
    found: dict[str, Result] = {}
    began: list[str] = []
    for line in data.decode().split("\n")[:-1]:
        message = json.loads(line)
        if "result" in message:
            found[message["result"]["check"]] = Result(**message["result"])
        else:
            began = message["began"]
    text = "the check ended without a result" if ended else f"no answer within {seconds:g} s"
    for name in began:
        if name in names and name not in found:
            found[name] = Result(name, False, text)
    return [found.get(name, Result(name, None, "not reached")) for name in names]


def guarded(work: Work, names: t.Sequence[str], seconds: float) -> list[Result]:
    """Results of these checks, for what hung, a failed one."""
    pipe, other = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(pipe)
            _child(work, other)
            status = 0
        finally:
            # Nothing of the parent's may run in the child: no handlers at exit, no buffers written twice.
            os._exit(status)
    os.close(other)
    data, ended = _read(pipe, seconds)
    os.close(pipe)
    _end(pid)
    return _results(data, names, ended, seconds)
