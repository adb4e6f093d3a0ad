# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab: hosts, a fabric and emulated hardware on one machine. Never imported by plugins or roles."""
