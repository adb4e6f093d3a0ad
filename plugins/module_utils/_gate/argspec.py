# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of nccl_gate and nccl_gate_report, for the action plugins and for the modules that document them."""
from __future__ import annotations

import typing as t

REPORT: dict[str, dict[str, t.Any]] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "report_dir": {"type": "path", "required": True},
    "mode": {"type": "str", "choices": ["apply", "verify"], "default": "apply"},
    "max_age_days": {"type": "int", "default": 7},
}
SEARCH: dict[str, dict[str, t.Any]] = {
    "pool": {"type": "str", "required": True},
    "search": {"type": "str", "choices": ["on_failure", "always", "never"], "default": "on_failure"},
    "first": {"type": "dict", "required": True},
    "run_id": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "dict", "required": True},
    "leaves": {"type": "dict", "default": {}},
    "rails": {"type": "list", "elements": "dict", "required": True},
    "gpus_per_host": {"type": "int", "required": True},
    "processes_per_host": {"type": "int", "default": 1},
    "program": {"type": "str", "default": "all_reduce_perf"},
    "launcher": {"type": "str", "default": "mpirun"},
    "environment": {"type": "dict", "default": {}},
    "network": {"type": "str", "default": ""},
    "min_busbw_gbps": {"type": "float", "required": True},
    "node_busbw_gbps": {"type": "float", "default": 0},
    "pass_fraction": {"type": "float", "default": 0.9, "no_log": False},
    "kinds": {"type": "list", "elements": "str", "default": ["ring", "rails"]},
    "rules": {"type": "dict", "default": {}},
    "min_bytes": {"type": "str", "default": "1G"},
    "max_bytes": {"type": "str", "default": "4G"},
    "step_factor": {"type": "int", "default": 2},
    "iterations": {"type": "int", "default": 20},
    "warmup_iterations": {"type": "int", "default": 5},
    "check": {"type": "int", "default": 1},
    "run_seconds": {"type": "int", "default": 120},
    "time_limit_seconds": {"type": "int", "default": 3600},
    "parallel": {"type": "int", "default": 16},
    "allow_simulated": {"type": "bool", "default": False},
    "allow_socket": {"type": "bool", "default": False},
    "report_dir": {"type": "path", "required": True},
    "max_age_seconds": {"type": "int", "default": 7200},
}
