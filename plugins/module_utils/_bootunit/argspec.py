# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the module fabric_boot, and the request that they make."""
from __future__ import annotations

import typing as t

from .model import Request


def spec() -> dict[str, t.Any]:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "check_drift": {"type": "bool", "default": True},
        "python": {"type": "str", "default": "/usr/bin/python3"},
        "digest": {"type": "str"},
        "source": {"type": "path"},
        "tool_timeout_seconds": {"type": "int", "default": 10},
    }


def request(params: t.Mapping[str, t.Any]) -> Request:
    return Request(params["state"], params["digest"] or "", params["source"] or "", params["python"],
                   params["check_drift"])


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))
