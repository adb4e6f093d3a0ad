# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    """Options of the modules that may change a port with the way to the host on it (module_utils/_idle/argspec.py)."""

    DOCUMENTATION = r"""
options:
  allow_management:
    description:
      - Change a listed port although it carries the SSH connection or the default route. The change then runs with an
        armed revert. Before the first write the state is saved on the host and a timer is set; if the controller does
        not come back within O(revert_seconds) after the last write, the host restores the saved state, and the next run
        reports that.
      - Without it such a port is refused.
    type: bool
    default: false
  revert_seconds:
    description: How long the timer waits for the controller, with O(allow_management). At least 5.
    type: int
    default: 60
"""
