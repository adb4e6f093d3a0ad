# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the module roce_gid, and the request that they make."""
from __future__ import annotations

import typing as t

from .model import Request, Want


def gid() -> dict[str, t.Any]:
    subnets = {"type": "list", "elements": "str", "default": []}
    one = {"pci": {"type": "str", "required": True}, "subnets": subnets}
    return {
        "ports": {"type": "list", "elements": "dict", "required": True, "options": one},
        "subnets": subnets,
        "address_family": {"type": "str", "choices": ["ipv4", "ipv6"], "default": "ipv4"},
        "roce_version": {"type": "str", "choices": ["v1", "v2"], "default": "v2"},
        "roce_mode": {"type": "str", "choices": ["v1", "v2"]},
        "persistent": {"type": "bool", "default": True},
        "missing": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
        "wait_seconds": {"type": "float", "default": 5.0},
        "tool_timeout_seconds": {"type": "int", "default": 10},
    }


def request(params: t.Mapping[str, t.Any]) -> Request:
    common = tuple(params["subnets"])
    # sysfs writes PCI addresses in lower case.
    wants = tuple(Want(entry["pci"].strip().lower(), tuple(entry.get("subnets") or common))
                  for entry in params["ports"])
    return Request(wants, params["address_family"], params["roce_version"], params["roce_mode"],
                   max(0.0, params["wait_seconds"]), params["missing"] == "fail")
