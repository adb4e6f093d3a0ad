# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of roce_qos."""
from __future__ import annotations

import typing as t

from .._idle.argspec import disruption
from .factory import CHOICES
from .intent import CNP_DSCP, CNP_PRIORITY
from .model import GROUPS


def _group_lists() -> dict[str, t.Any]:
    return {name: {"type": "list", "elements": "str", "choices": list(GROUPS)}
            for name in ("unmanaged_groups", "require_groups")}


def _class(cnp: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Options that a port may have of its own, without defaults."""
    eight = {"type": "list", "elements": "int", "required": True}
    return {
        "dscp": {"type": "int"},
        "priority": {"type": "int"},
        "cnp": {"type": "dict", "options": dict(cnp)},
        "lossless": {"type": "bool"},
        "trust": {"type": "str", "choices": ["dscp", "pcp"]},
        "ecn": {"type": "bool"},
        "bandwidth_percent": {"type": "int"},
        "ets": {"type": "dict", "options": {"prio_tc": dict(eight), "tc_tsa": {**eight, "elements": "str"},
                                            "tc_bw": dict(eight)}},
        "buffer": {"type": "dict", "options": {"prio_buffer": dict(eight), "buffer_size_bytes": dict(eight)}},
        "cable_length_metres": {"type": "int"},
        "dcbx_owner": {"type": "str", "choices": ["host", "firmware"]},
        **_group_lists(),
    }


def spec() -> dict[str, t.Any]:
    port = _class({"dscp": {"type": "int"}, "priority": {"type": "int"}})
    top = _class({"dscp": {"type": "int", "default": CNP_DSCP}, "priority": {"type": "int", "default": CNP_PRIORITY}})
    for name, default in (("dscp", 26), ("priority", 3), ("lossless", True), ("trust", "dscp"), ("ecn", True),
                          ("bandwidth_percent", 50), ("dcbx_owner", "host"), ("unmanaged_groups", []),
                          ("require_groups", [])):
        top[name]["default"] = default
    return {
        "ports": {"type": "list", "elements": "dict", "required": True,
                  "options": {"pci": {"type": "str", "required": True}, **port}},
        **top,
        "take_over": {"type": "bool", "default": False},
        "persistent": {"type": "bool", "default": True},
        **disruption(),
        "backend": {"type": "str", "choices": list(CHOICES), "default": "auto"},
        "tool_timeout_seconds": {"type": "int", "default": 10},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))
