# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Files of a packed program and its configuration, as they are on a host."""
from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass

from .errors import AidcError, Problem
from .machine import Machine


@dataclass(frozen=True)
class Present:
    """A file as it is: its text (of the program: its SHA-256) and its mode."""

    text: str
    mode: int


def present(machine: Machine, path: str, program: str) -> Present | None:
    """The file at ``path``, of which that at ``program`` is the packed one. Raises AidcError if it is unreadable."""
    real = machine.path(path)
    try:
        content, mode = real.read_bytes(), stat.S_IMODE(real.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise AidcError([Problem(path, error.strerror or str(error), "a readable file", "run as root")]) from error
    text = hashlib.sha256(content).hexdigest() if path == program else content.decode("utf-8", errors="replace")
    return Present(text, mode)
