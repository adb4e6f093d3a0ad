# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of mlx5_nvconfig, and the request that they make."""
from __future__ import annotations

import typing as t

from .model import Request, Want, make_want


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


def _merged(common: t.Mapping[str, t.Any], own: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A device's own values win; null takes a common one away."""
    found = {str(key).strip().upper(): value for key, value in common.items()}
    found.update({str(key).strip().upper(): value for key, value in own.items()})
    return {key: value for key, value in found.items() if value is not None}


def request(params: t.Mapping[str, t.Any]) -> Request:
    common = params["parameters"] or {}
    wants: list[Want] = []
    for entry in params["devices"]:
        # sysfs writes PCI addresses in lower case.
        wants.append(make_want(entry["pci"].strip().lower(), _merged(common, entry["parameters"] or {})))
    return Request(tuple(wants), params["unknown_parameters"], params["tool"], params["bmc_powered"])
