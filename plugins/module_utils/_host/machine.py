# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The machine that io code talks to; tests hand in another root, tools that are functions, and a clock."""
from __future__ import annotations

import os
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from .runner import Result, Runner, run


@dataclass(frozen=True)
class Machine:
    root: Path = Path("/")
    run: Runner = run
    sleep: t.Callable[[float], None] = time.sleep
    monotonic: t.Callable[[], float] = time.monotonic
    pid: int = field(default_factory=os.getpid)
    tool_timeout_seconds: float = 10.0
    # Whether our caller holds the host's lock already.
    locked: bool = False

    def path(self, absolute: str) -> Path:
        """Where the file of that absolute name lies below our root."""
        return self.root / absolute.lstrip("/")

    def tool(self, *argv: str) -> Result:
        return self.run(argv, self.tool_timeout_seconds)
