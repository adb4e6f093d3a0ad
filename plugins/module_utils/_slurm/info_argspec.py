# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of slurm_info."""
from __future__ import annotations

import typing as t

from .info_io import PARTS


def info() -> dict[str, t.Any]:
    return {
        "gather": {"type": "list", "elements": "str", "choices": list(PARTS), "default": list(PARTS)},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "tool_timeout_seconds": {"type": "int", "default": 30},
    }
