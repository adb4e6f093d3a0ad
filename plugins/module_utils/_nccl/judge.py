# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""From a parsed log to one of nine states. Pure: no file, no clock, no environment."""
from __future__ import annotations

from .model import Expected, Limit, Result, Verdict


def judge(result: Result, limit: Limit | None = None, expected: Expected | None = None) -> Verdict:
    """The verdict on one run, with its reason."""
    raise NotImplementedError
