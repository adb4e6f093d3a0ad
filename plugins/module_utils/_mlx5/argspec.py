# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the mlx5 modules, and the request that they make."""
from __future__ import annotations

import typing as t

from .model import Request, Want

_TIMEOUT = {"tool_timeout_seconds": {"type": "int", "default": 10}}


def info() -> dict[str, t.Any]:
    return {"rails": {"type": "list", "elements": "str", "default": []}, **_TIMEOUT}


def port() -> dict[str, t.Any]:
    one = {"pci": {"type": "str", "required": True}, "mtu_bytes": {"type": "int", "required": True}}
    return {
        "ports": {"type": "list", "elements": "dict", "required": True, "options": one},
        "runtime": {"type": "bool", "default": True},
        "persistent": {"type": "bool", "default": True},
        "verify_rdma_mtu": {"type": "bool", "default": True},
        **_TIMEOUT,
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def request(params: t.Mapping[str, t.Any]) -> Request:
    # sysfs writes PCI addresses in lower case.
    wants = tuple(Want(entry["pci"].strip().lower(), entry["mtu_bytes"]) for entry in params["ports"])
    return Request(wants, params["runtime"], params["persistent"], params["verify_rdma_mtu"])
