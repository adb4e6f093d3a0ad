# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the action plugin slurm_render. One that is not given is the variable slurm_OPTION, if there is one."""
from __future__ import annotations

import typing as t

from .model import CGROUPS, CONFIG_DIR, OWNERSHIPS, STATE_DIR, TOPOLOGIES

PARTITIONS: list[dict[str, t.Any]] = [
    {"name": "train", "groups": ["gb200"], "default": True},
    {"name": "infer", "groups": ["l40s"]},
    {"name": "cpu", "groups": ["epyc9754"]},
]
RENDER: dict[str, dict[str, t.Any]] = {
    "cluster_name": {"type": "str", "default": "aidc"},
    "version": {"type": "str"},
    "ownership": {"type": "str", "choices": list(OWNERSHIPS), "default": "whole"},
    "partitions": {"type": "list", "elements": "dict", "default": PARTITIONS},
    "topology": {"type": "str", "choices": list(TOPOLOGIES), "default": "auto"},
    "block_size": {"type": "int", "default": 0},
    "leaf_groups": {"type": "str", "default": "leaf.*"},
    "cgroup": {"type": "str", "choices": list(CGROUPS), "default": "auto"},
    "memory_reserve_mib": {"type": "int", "default": 2048},
    "mem_spec_limit_mib": {"type": "int", "default": 0},
    "health_program": {"type": "str", "default": ""},
    "health_interval": {"type": "int", "default": 300},
    "prolog": {"type": "str", "default": ""},
    "epilog": {"type": "str", "default": ""},
    "reboot_program": {"type": "str", "default": ""},
    "options": {"type": "dict", "default": {}},
    "config_dir": {"type": "str", "default": CONFIG_DIR},
    "state_dir": {"type": "str", "default": STATE_DIR},
    "user": {"type": "str", "default": "slurm"},
    "database_host": {"type": "str", "default": "localhost"},
    "database_user": {"type": "str", "default": "slurm"},
    "database_name": {"type": "str", "default": "slurm_acct_db"},
    "max_age_hours": {"type": "float", "default": 24.0},
    "use_records": {"type": "bool", "default": True},
}
