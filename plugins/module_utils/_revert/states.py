# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of armed_revert."""
from __future__ import annotations

import typing as t

from .._host.lock import host_lock
from .._host.machine import Machine
from . import io

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "state": {"type": "str", "choices": ["status", "cancelled"], "default": "status"},
    "module": {"type": "str", "choices": ["mlx5_port", "rail_network", "roce_qos"]},
}
# An undo holds the lock for as long as the managers of the network take.
LOCK_SECONDS = 30.0


def perform(machine: Machine, state: str, module: str | None, check_mode: bool) -> dict[str, t.Any]:
    """Raises AidcError where the lock cannot be had."""
    if state == "status" or check_mode:
        before = io.records(machine, module)
    else:
        with host_lock(machine, "armed_revert", LOCK_SECONDS):
            before = io.cancel(machine, module)
    gone = [record for record in before if record.state == "armed" and state == "cancelled"]
    return {
        "changed": bool(gone), "before": [record.public() for record in before],
        "after": [record.public() for record in before if record not in gone],
        "commands": [["cancel", record.id] for record in gone],
    }
