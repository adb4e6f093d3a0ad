# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a running lab, set by name (see README.md).

The supervisor's two calls are here, so that a host without faults does not load the rest: each of
its processes stays for as long as the host runs.
"""
from __future__ import annotations

from lab.instance import Instance


def before_boot(instance: Instance, host: str, kind: str) -> None:
    """The links are there, PID 1 is not: set again what is about links and hardware."""
    if (instance.dir / "faults.json").exists():
        from lab.faults import manage

        manage.before_boot(instance, host, kind)


def after_boot(instance: Instance, host: str, child: int) -> None:
    """PID 1 starts below process ``child``: set again what is in the host's files, before a service runs."""
    if (instance.dir / "faults.json").exists():
        from lab.faults import manage

        manage.after_boot(instance, host, child)
