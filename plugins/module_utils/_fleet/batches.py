# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""In which order a change goes over a fleet: one host of each class, a tenth of each class, the rest. Pure."""
from __future__ import annotations

import typing as t

CANARY, TENTH, REST = BATCHES = ("canary", "tenth", "rest")


def batches(
    classes: t.Mapping[str, t.Sequence[str]], canaries: t.Sequence[str] = (), per_class: int = 1, percent: int = 10,
) -> dict[str, str]:
    """The batch of each host. ``canaries`` go first in their class; another class has its first host as its canary.

    ``per_class`` 0 and no ``canaries`` is no canary batch; ``percent`` is rounded down.
    """
    found: dict[str, str] = {}
    for hosts in classes.values():
        chosen = [host for host in hosts if host in canaries] or list(hosts[:per_class])
        others = [host for host in hosts if host not in chosen]
        tenth = min(len(hosts) * percent // 100, len(others))
        found.update(dict.fromkeys(chosen, CANARY))
        found.update(dict.fromkeys(others[:tenth], TENTH))
        found.update(dict.fromkeys(others[tenth:], REST))
    return found
