# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a fabric as rows of data, and what runs them: set, detected, undone, proven clean, and the legal twin.

    python -m tests.faults [ROW ...]
"""
