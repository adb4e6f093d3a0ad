# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from typing import get_args

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import xids

# The actions of the table that the facts have, by number.
FACTS = {
    "restart": {13, 31, 32, 43, 45, 68, 69, 94},
    "reset": {46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158},
    "reboot": {79}, "hardware": {54, 74, *range(144, 151), 167}, "note": {63, 92, 121, 137, 154, 160, 161},
    "detail": {159, *range(162, 166), 171, 172},
}


def test_each_number_once_with_a_source() -> None:
    assert len({one.number for one in xids.XIDS}) == len(xids.XIDS)
    assert all(one.source and one.meaning for one in xids.XIDS)
    assert re.fullmatch(r"20\d\d-\d\d", xids.DATED)


def test_actions_are_those_of_the_facts() -> None:
    assert {action: {one.number for one in xids.XIDS if one.action == action} for action in FACTS} == FACTS
    assert set(xids.HINTS) == set(FACTS) == set(get_args(xids.Action))


def test_lookup() -> None:
    found = xids.xid(79)
    assert found is not None and found.action == "reboot"
    assert xids.xid(999) is None
