# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the module slurm_health, and the request that they make."""
from __future__ import annotations

import typing as t

from .._health.model import CHECKS, options
from .model import Request

_SETTINGS = ("checks", "gpus", "gpus_from", "memlock_bytes", "disks", "fail_after", "pass_after", "drain", "resume",
             "time_limit_seconds")


def spec() -> dict[str, t.Any]:
    disk = {"path": {"type": "path", "required": True}, "min_free_percent": {"type": "int", "default": 5}}
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "checks": {"type": "list", "elements": "str", "choices": list(CHECKS), "default": list(CHECKS)},
        "gpus": {"type": "int"},
        "gpus_from": {"type": "str", "choices": ["driver", "device_files"], "default": "driver"},
        "memlock_bytes": {"type": "int"},
        "disks": {"type": "list", "elements": "dict", "options": disk, "default": [{"path": "/"}]},
        "fail_after": {"type": "int", "default": 2},
        # Sanity takes the name for that of a password.
        "pass_after": {"type": "int", "default": 3, "no_log": False},
        "drain": {"type": "bool", "default": True},
        "resume": {"type": "bool", "default": False},
        "time_limit_seconds": {"type": "int", "default": 20},
        "ask": {"type": "bool", "default": True},
        "digest": {"type": "str"},
        "source": {"type": "path"},
    }


def request(params: t.Mapping[str, t.Any]) -> Request:
    """Raises AidcError for numbers that the program would refuse."""
    chosen = options({name: params[name] for name in _SETTINGS})
    return Request(params["state"], chosen, params["digest"] or "", params["source"] or "", params["ask"])
