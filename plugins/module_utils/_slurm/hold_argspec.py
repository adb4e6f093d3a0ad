# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of slurm_reservation, and the request that they make."""
from __future__ import annotations

import typing as t

from .hold_model import Request


def spec() -> dict[str, t.Any]:
    return {
        "purpose": {"type": "str", "required": True},
        "run_id": {"type": "str", "default": ""},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "users": {"type": "list", "elements": "str", "default": ["root"]},
        "minutes": {"type": "int", "default": 60},
        "tool_timeout_seconds": {"type": "int", "default": 30},
    }


def request(params: t.Mapping[str, t.Any]) -> Request:
    return Request(params["purpose"], params["run_id"], params["state"], tuple(dict.fromkeys(params["nodes"])),
                   tuple(dict.fromkeys(params["users"])), params["minutes"])
