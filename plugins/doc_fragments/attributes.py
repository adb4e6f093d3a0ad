# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    """Attributes that every module of the collection states, with their meaning in one place."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Whether check mode says what a run would do, without doing it.
  diff_mode:
    description: Whether the values before and after are shown in diff mode.
  idempotent:
    description: Whether a second run with the same options changes nothing.
  platform:
    description: Operating systems of the hosts.
    support: full
    platforms: debian, ubuntu, rhel
"""
