# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the program that builds something: output into a log, an end in time, an end with this process."""
from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import syscalls
from lab.instance import LabError

LIMIT_SECONDS = 600
# When the first process in these namespaces ends, killed or not, the others and the mounts are gone.
OWN_NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL")


def logged(what: str, argv: Sequence[str], log: Path, hint: str = "",
           before_exec: Callable[[], None] = lambda: None) -> None:
    """Run ``argv`` with its output in ``log``; raises LabError with the log's end and ``hint`` when it fails."""

    def first() -> None:
        before_exec()
        syscalls.set_pdeathsig(signal.SIGKILL)

    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   env={**os.environ, "LC_ALL": "C"}, preexec_fn=first)
        try:
            code = process.wait(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            process.kill()
            process.wait()
    if code != 0:
        tail = "".join(log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)[-12:])
        raise LabError(f"{what} failed (exit status {code}); the end of {log}:\n{tail}{hint}")
