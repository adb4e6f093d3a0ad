# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Carry out a plan, and put files back that their owner refused."""
from __future__ import annotations

import os
import stat
import typing as t

from .._host.errors import AidcError, Problem
from .._host.files import read_text, remove, write_atomic
from .._host.machine import Machine
from .._networkd import io as networkd_io
from .model import PENDING_FILE, Present, Step

# An owner takes its time: a new activation, the generators of systemd.
OWNER_SECONDS = 60.0
_FOLDER_MODE = 0o755


class Applying:
    """One plan on its way; it remembers what stood where it wrote."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.done: list[tuple[str, ...]] = []
        self.old: dict[str, Present | None] = {}

    def _remember(self, path: str) -> None:
        real = self.machine.path(path)
        text = read_text(real)
        self.old[path] = None if text is None else Present(text, stat.S_IMODE(os.stat(real).st_mode))

    def _write(self, step: Step) -> None:
        path = step.command[1]
        if path != PENDING_FILE:
            self._remember(path)
        write_atomic(self.machine.path(path), step.text, step.mode, _FOLDER_MODE)

    def _file(self, step: Step) -> Problem | None:
        action, path = step.command[:2]
        try:
            if action == "write":
                self._write(step)
            elif action == "remove":
                remove(self.machine.path(path))
            else:
                # procfs: no file may be put in the place of another.
                self.machine.path(path).write_text(f"{step.command[2]}\n", encoding="ascii")
        except OSError as error:
            return Problem(path, error.strerror or str(error), f"{action} to succeed", "is the file system writable?")
        return None

    def _tool(self, step: Step) -> Problem | None:
        result = self.machine.run(step.command, max(OWNER_SECONDS, self.machine.tool_timeout_seconds))
        if result.state != "ok":
            return Problem(" ".join(step.command), result.why(), "success", step.why)
        return networkd_io.wait_configured(self.machine, step.netdevs) if step.waits else None

    def _put_back(self) -> None:
        """All files as they were. The marker goes too: the owner has read nothing that is not there now."""
        for path, present in reversed(list(self.old.items())):
            if present is None:
                remove(self.machine.path(path))
            else:
                write_atomic(self.machine.path(path), present.text, present.mode, _FOLDER_MODE)
        remove(self.machine.path(PENDING_FILE))

    def _refused(self, step: Step, problem: Problem, pending: bool) -> AidcError:
        try:
            self._put_back()
        except OSError as error:
            more = Problem(str(error.filename), error.strerror or str(error), "the old text put back")
            return AidcError([problem, more], self.done)
        if pending:
            # What an earlier run left is still to be read.
            write_atomic(self.machine.path(PENDING_FILE), "", 0o644, _FOLDER_MODE)
        # The owner made what it could of our files; now it must do so of the old ones.
        self.machine.run(step.command, OWNER_SECONDS)
        put_back = Problem(" ".join(self.old), "put back as they were", "files that their owner accepts")
        return AidcError([problem, put_back])

    def run(self, steps: t.Sequence[Step], pending: bool) -> None:
        """Raises AidcError with what was done before the error."""
        for step in steps:
            is_file = step.command[0] in ("write", "remove", "set")
            problem = self._file(step) if is_file else self._tool(step)
            if problem is not None and step.judges:
                raise self._refused(step, problem, pending)
            if problem is not None:
                raise AidcError([problem], self.done)
            self.done.append(step.command)
