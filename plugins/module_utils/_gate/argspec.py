# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of nccl_gate_report, for the action plugin and for the module that documents it."""
from __future__ import annotations

import typing as t

REPORT: dict[str, dict[str, t.Any]] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "report_dir": {"type": "path", "required": True},
    "mode": {"type": "str", "choices": ["apply", "verify"], "default": "apply"},
    "max_age_days": {"type": "int", "default": 7},
}
