# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the mlx5 modules, and the request that they make."""
from __future__ import annotations

import typing as t

from .._idle.argspec import disruption
from . import pcie
from .info import NodeClass
from .model import IB_MTUS_BYTES, Request, Want
from .tuning import KEYS

_TIMEOUT = {"tool_timeout_seconds": {"type": "int", "default": 10}}


_CLASS = {"type": "dict", "default": {},
          "options": {"pcie_speed_gts": {"type": "float"}, "pcie_width": {"type": "int"}}}


def info() -> dict[str, t.Any]:
    return {"rails": {"type": "list", "elements": "str", "default": []}, "class": _CLASS,
            "fabric": {"type": "bool", "default": False}, **_TIMEOUT}


def node_class(params: t.Mapping[str, t.Any]) -> NodeClass:
    given = params.get("class") or {}
    return NodeClass(given.get("pcie_speed_gts"), given.get("pcie_width"))


def port() -> dict[str, t.Any]:
    one = {
        "pci": {"type": "str", "required": True},
        "mtu_bytes": {"type": "int"},
        "rdma_mtu_bytes": {"type": "int", "choices": sorted(IB_MTUS_BYTES)},
        "admin_state": {"type": "str", "choices": ["up", "down"]},
        "rx_ring_entries": {"type": "int"},
        "tx_ring_entries": {"type": "int"},
        "channels": {"type": "int"},
        "pause_rx": {"type": "bool"},
        "pause_tx": {"type": "bool"},
        "max_read_request_bytes": {"type": "int", "choices": list(pcie.READ_REQUEST_BYTES)},
    }
    return {
        "ports": {"type": "list", "elements": "dict", "required": True, "options": one},
        "runtime": {"type": "bool", "default": True},
        "persistent": {"type": "bool", "default": True},
        "verify_rdma_mtu": {"type": "bool", "default": True},
        **disruption(),
        "info": {"type": "dict", "options": {"class": _CLASS}},
        **_TIMEOUT,
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def _want(entry: t.Mapping[str, t.Any]) -> Want:
    settings = {key: entry[key] for key in KEYS if entry.get(key) is not None}
    # sysfs writes PCI addresses in lower case.
    return Want(entry["pci"].strip().lower(), entry.get("mtu_bytes"), entry.get("rdma_mtu_bytes"), settings)


def request(params: t.Mapping[str, t.Any]) -> Request:
    wants = tuple(_want(entry) for entry in params["ports"])
    return Request(wants, params["runtime"], params["persistent"], params["verify_rdma_mtu"],
                   params["disruption_policy"], params["allow_management"])
