# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hypothesis measures time in two places, and a busy machine is no finding."""
from __future__ import annotations

from hypothesis import HealthCheck, settings

BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("busy", BUSY)
# For a second run of the same tests under another Python: what differs there is not found by more inputs.
settings.register_profile("short", BUSY, max_examples=25)
settings.load_profile("busy")
