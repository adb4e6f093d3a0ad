# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.model import GROUPS, Step, same, tos


def test_only_the_dscp_part_of_a_tos_counts() -> None:
    assert tos(26) == 104
    assert same("cm_tos", 106, 104) and same("traffic_class", 104, 107) and not same("cm_tos", 108, 104)
    assert not same("pfc", None, []) and same("pfc", [3], [3]) and not same("cable_length", 6, 7)


def test_order_of_writes() -> None:
    at = GROUPS.index
    assert at("dcbx") < at("trust") < at("dscp_map") < at("buffer") < at("pfc") and at("cable_length") < at("buffer")


def test_a_step_as_data() -> None:
    assert Step(("a", "b"), ("pfc",), "why", "0000:03:00.0", "link").as_dict() == {
        "command": ["a", "b"], "groups": ["pfc"], "disruptive": "link", "why": "why", "pci": "0000:03:00.0"}
