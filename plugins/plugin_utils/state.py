# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Where the controller keeps what it knows of the fleet."""
from __future__ import annotations

import typing as t

VARIABLE = "aidc_state_dir"


def state_dir(variables: t.Mapping[str, t.Any], template: t.Callable[[t.Any], t.Any]) -> str | None:
    """The variable ``aidc_state_dir``, else ``.state`` beside the inventory; None where there is neither.

    A variable that is there and empty says that nothing shall be kept.
    """
    if VARIABLE in variables:
        value = template(variables[VARIABLE])
        return str(value) if value else None
    folder = variables.get("inventory_dir")
    return f"{folder}/.state" if folder else None
