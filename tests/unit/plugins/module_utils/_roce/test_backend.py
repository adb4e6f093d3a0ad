# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.backend import map_changes, wanted_map
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.model import DEFAULT_MAP


def test_wrong_and_missing_entries_are_changes() -> None:
    have = {"dscp_map": [*DEFAULT_MAP[:26], 0, *DEFAULT_MAP[27:]], "dscp_missing": [0, 63]}
    assert map_changes(have, DEFAULT_MAP) == [(0, 0), (26, 3), (63, 7)]


def test_trust_without_a_managed_map_writes_the_drivers_own() -> None:
    assert wanted_map({"trust": "dscp"}) == list(DEFAULT_MAP)
    assert wanted_map({"dscp_map": [1] * 64}) == [1] * 64
