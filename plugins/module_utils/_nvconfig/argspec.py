# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of mlx5_nvconfig, and the request that they make."""
from __future__ import annotations

import typing as t

from .model import Request, make_want


def spec() -> dict[str, t.Any]:
    one = {"pci": {"type": "str", "required": True}, "parameters": {"type": "dict", "default": {}}}
    return {
        "devices": {"type": "list", "elements": "dict", "required": True, "options": one},
        "parameters": {"type": "dict", "default": {}},
        "unknown_parameters": {"type": "str", "choices": ["error", "skip"], "default": "error"},
        "tool": {"type": "str", "choices": ["auto", "mlxconfig", "mstconfig"], "default": "auto"},
        "bmc_powered": {"type": "bool"},
        "tool_timeout_seconds": {"type": "int", "default": 60},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def request(params: t.Mapping[str, t.Any]) -> Request:
    # sysfs writes PCI addresses in lower case.
    wants = tuple(make_want(entry["pci"].strip().lower(), params["parameters"] or {}, entry["parameters"])
                  for entry in params["devices"])
    return Request(wants, params["unknown_parameters"], params["tool"], params["bmc_powered"])
