# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the action plugin fabric_audit."""
from __future__ import annotations

import typing as t

AUDIT: dict[str, dict[str, t.Any]] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "what": {"type": "str", "choices": ["audit", "targets"], "default": "audit"},
    "fail_on": {"type": "str", "choices": ["error", "warning", "note", "never"], "default": "error"},
}
