# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of gpu_info, and what they ask for."""
from __future__ import annotations

import typing as t

from .model import Wanted
from .tables import BOARD_KINDS


def _class() -> dict[str, t.Any]:
    """A new one for each call, as AnsibleModule writes its defaults into it."""
    one = {
        "gpu_count": {"type": "int"},
        "gpu_pci_ids": {"type": "list", "elements": "str", "default": []},
        "board": {"type": "str", "choices": list(BOARD_KINDS)},
        "flavour": {"type": "str", "choices": ["open", "proprietary"]},
        "driver_version": {"type": "str"},
        "module_parameters": {"type": "dict", "default": {}},
        "persistence": {"type": "bool"},
        "mig": {"type": "bool"},
        "memory_total_mib": {"type": "int"},
    }
    return {"type": "dict", "default": {}, "options": one}


def info() -> dict[str, t.Any]:
    return {
        "class": _class(),
        "rails": {"type": "list", "elements": "str", "default": []},
        "link_layer": {"type": "str", "choices": ["Ethernet", "InfiniBand"], "default": "Ethernet"},
        "tool_timeout_seconds": {"type": "int", "default": 30},
    }


def timeout(params: t.Mapping[str, t.Any]) -> float:
    return max(1.0, float(params["tool_timeout_seconds"]))


def rails(params: t.Mapping[str, t.Any]) -> list[str]:
    # sysfs writes PCI addresses in lower case.
    return [pci.strip().lower() for pci in params["rails"]]


def _parameter(value: t.Any) -> str:
    """A switch of YAML is a number to the module."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def wanted(params: t.Mapping[str, t.Any]) -> Wanted:
    given = params.get("class") or {}
    parameters = {name[6:] if name.startswith("NVreg_") else name: _parameter(value)
                  for name, value in (given.get("module_parameters") or {}).items()}
    return Wanted(
        given.get("gpu_count"), tuple(one.lower() for one in given.get("gpu_pci_ids") or ()), given.get("board"),
        given.get("flavour"), given.get("driver_version"), parameters, given.get("persistence"), given.get("mig"),
        given.get("memory_total_mib"))
