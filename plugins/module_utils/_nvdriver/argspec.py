# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of nvidia_driver, and the request that they make."""
from __future__ import annotations

import typing as t

from .._gpu.tables import BOARD_KINDS
from .._host.errors import AidcError
from .._idle.model import POLICIES
from . import catalog, options
from .model import Request

REPOSITORIES = ("cuda", "distribution")


def nvidia_driver() -> dict[str, t.Any]:
    return {
        "version": {"type": "str"},
        "flavour": {"type": "str", "choices": ["open", "proprietary"], "default": "open"},
        "board": {"type": "str", "choices": list(BOARD_KINDS)},
        "repository": {"type": "str", "choices": list(REPOSITORIES), "default": "cuda"},
        "module_options": {"type": "dict", "default": {}},
        "registry_dwords": {"type": "dict", "default": {}},
        "hold": {"type": "bool", "default": True},
        "replace_holds": {"type": "bool", "default": False},
        "reload": {"type": "bool", "default": True},
        "reload_in_domain": {"type": "bool", "default": False},
        "disruption_policy": {"type": "str", "choices": list(POLICIES), "default": "if_idle"},
        "manage": {"type": "bool", "default": True},
        "allow_known_bad": {"type": "list", "elements": "str", "default": []},
        "package_sets": {"type": "list", "elements": "dict", "default": []},
        "known_bad": {"type": "list", "elements": "dict", "default": []},
        "tool_timeout_seconds": {"type": "int", "default": 30},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def request(params: t.Mapping[str, t.Any]) -> Request:
    """Raises AidcError for data that is not understood, and for a key with two values."""
    both = options.conflicts(params["module_options"], params["registry_dwords"])
    if both:
        raise AidcError(both)
    return Request(
        (params["version"] or "").strip(), params["flavour"], params["board"], params["repository"],
        tuple(catalog.package_set(row) for row in params["package_sets"]),
        tuple(catalog.known_bad(row) for row in params["known_bad"]), tuple(params["allow_known_bad"]),
        options.merge(params["module_options"], params["registry_dwords"]), params["hold"], params["replace_holds"],
        params["reload"], params["reload_in_domain"], params["disruption_policy"], params["manage"])
