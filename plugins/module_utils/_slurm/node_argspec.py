# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of slurm_node, slurm_info and slurm_interruptions, and the request that they make."""
from __future__ import annotations

import typing as t

from .node_model import Request

_TIMEOUT = {"tool_timeout_seconds": {"type": "int", "default": 30}}


def node() -> dict[str, t.Any]:
    return {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "state": {"type": "str", "required": True, "choices": ["drained", "draining", "resumed", "undrained"]},
        "source": {"type": "str", "default": "manual"},
        "run_id": {"type": "str"},
        "reason": {"type": "str"},
        "when_held": {"type": "str", "choices": ["fail", "keep"], "default": "fail"},
        "force_reason": {"type": "str"},
        "wait_seconds": {"type": "int", "default": 600},
        **_TIMEOUT,
    }


def request(params: t.Mapping[str, t.Any]) -> Request:
    return Request(
        tuple(params["nodes"]), params["state"], params["source"], params["run_id"] or None, params["reason"] or "",
        params["when_held"], params["force_reason"], max(0.0, float(params["wait_seconds"])))


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))
