# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of imex_domain and imex_plan, and the request that they make."""
from __future__ import annotations

import typing as t

from .._idle.model import POLICIES
from .model import OWNERS, STATES, Request, plain_address

PLAN: dict[str, t.Any] = {
    "domains": {"type": "dict"},
    "batch": {"type": "list", "elements": "str", "default": []},
    "reads": {"type": "dict"},
    "users": {"type": "dict"},
    "stops": {"type": "dict"},
    "restart": {"type": "bool", "default": False},
}


def imex_domain() -> dict[str, t.Any]:
    return {
        "domain": {"type": "str", "default": ""},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "owner": {"type": "str", "choices": list(OWNERS), "default": "host"},
        "state": {"type": "str", "choices": list(STATES), "default": "started"},
        "config": {"type": "dict", "default": {}},
        "may_join": {"type": "bool", "default": False},
        "disruption_policy": {"type": "str", "choices": list(POLICIES), "default": "if_idle"},
        "wait_seconds": {"type": "int", "default": 60},
        "tool_timeout_seconds": {"type": "int", "default": 20},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def _value(value: t.Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def request(params: t.Mapping[str, t.Any]) -> Request:
    return Request(
        params["domain"], tuple(plain_address(node) or node for node in params["nodes"]), params["owner"],
        params["state"], {str(key): _value(value) for key, value in params["config"].items()}, params["may_join"],
        params["disruption_policy"], max(0, params["wait_seconds"]))
