# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Options of the action discover."""
from __future__ import annotations

import typing as t

DISCOVER: dict[str, t.Any] = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "host_info": {"type": "str", "default": "aidc_discover_host"},
    "mlx5_info": {"type": "str", "default": "aidc_discover_mlx5"},
    "classes_dir": {"type": "path", "required": True},
    "directory": {"type": "path", "required": True},
    "force": {"type": "bool", "default": False},
}
