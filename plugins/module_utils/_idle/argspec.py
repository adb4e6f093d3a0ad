# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the modules that may disturb somebody, or the connection that they are called through."""
from __future__ import annotations

import typing as t

from .model import POLICIES


def disruption() -> dict[str, t.Any]:
    return {
        "disruption_policy": {"type": "str", "choices": list(POLICIES), "default": "if_idle"},
        "allow_management": {"type": "bool", "default": False},
        "revert_seconds": {"type": "int", "default": 60},
    }
