# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the module rdma_stack, and the request that they make."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError, Problem
from .._idle.model import POLICIES
from .model import FLAVOURS, Request


def rdma_stack() -> dict[str, t.Any]:
    return {
        "flavour": {"type": "str", "choices": list(FLAVOURS), "default": "inbox"},
        "packages": {"type": "dict", "default": {}},
        "programs": {"type": "list", "elements": "str", "default": []},
        "doca_profile": {"type": "str", "default": "doca-ofed"},
        "doca_version": {"type": "str"},
        "doca_for_next_kernel": {"type": "bool", "default": False},
        "restart": {"type": "bool", "default": False},
        "disruption_policy": {"type": "str", "choices": list(POLICIES), "default": "if_idle"},
        "tool_timeout_seconds": {"type": "int", "default": 10},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def _packages(given: t.Mapping[str, t.Any]) -> dict[str, tuple[str, ...]]:
    found = {}
    for family, names in given.items():
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
            raise AidcError([Problem(f"packages: {family}", repr(names), "a list of package names")])
        found[family] = tuple(dict.fromkeys(names))
    return found


def request(params: t.Mapping[str, t.Any]) -> Request:
    """Raises AidcError for packages that are no names."""
    return Request(
        params["flavour"], _packages(params["packages"]), tuple(dict.fromkeys(params["programs"])),
        params["doca_profile"], params["doca_version"], params["doca_for_next_kernel"], params["restart"],
        params["disruption_policy"],
    )
