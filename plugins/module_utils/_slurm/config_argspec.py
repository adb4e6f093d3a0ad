# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the module slurm_config, and the request that they make."""
from __future__ import annotations

import typing as t

from .config_model import DAEMONS, Request
from .model import CONFIG_DIR


def spec() -> dict[str, t.Any]:
    return {
        "files": {"type": "dict", "required": True},
        "absent": {"type": "list", "elements": "str", "default": []},
        "directory": {"type": "str", "default": CONFIG_DIR},
        "role": {"type": "str", "choices": list(DAEMONS), "required": True},
        "state": {"type": "str", "choices": ["installed", "active"], "default": "active"},
        "services": {"type": "list", "elements": "str"},
        "user": {"type": "str", "default": "slurm"},
        "take_over": {"type": "bool", "default": False},
        "start_timeout_seconds": {"type": "int", "default": 60},
        "tool_timeout_seconds": {"type": "int", "default": 30},
    }


def request(params: t.Mapping[str, t.Any]) -> Request:
    services = params["services"]
    if services is None:
        daemon = DAEMONS[params["role"]]
        services = [daemon] if daemon else []
    return Request({str(name): str(text) for name, text in params["files"].items()}, tuple(params["absent"]),
                   params["directory"].rstrip("/"), params["role"], params["state"], tuple(services), params["user"],
                   params["take_over"], max(1.0, float(params["start_timeout_seconds"])))


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))
