# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the action plugin render."""
from __future__ import annotations

import typing as t

from .._rail.model import OWNERS

RENDER: dict[str, dict[str, t.Any]] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "directory": {"type": "path", "required": True},
    "owner": {"type": "str", "choices": list(OWNERS), "default": "networkd"},
}
