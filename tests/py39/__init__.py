# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit tests and payloads of what runs on managed nodes, under the oldest Python promised there (simulation.md 0.1)."""
