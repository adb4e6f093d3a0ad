# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter import class_deviations


def use(hostvars: t.Any, groups: t.Any, classes: t.Any) -> list[str]:
    found: list[str] = class_deviations.FilterModule().filters()["class_deviations"](hostvars, groups, classes)
    return found


def test_hosts_of_the_groups_are_compared() -> None:
    hostvars = {"g1": {"node_class_name": "gb200", "a": 2, "secret": 1 / 3}, "login": {}}
    groups = {"gb200": ["g1"], "all": ["g1", "login"]}
    classes = {"gb200": {"node_class_name": "gb200", "a": 1}, "l40s": {"a": 1}}
    assert use(hostvars, groups, classes) == ["gb200: a: class 1, here 2: g1"]


@pytest.mark.parametrize(("hostvars", "groups", "classes", "text"), [
    (1, {}, {}, "hostvars: got int"), ({}, 1, {}, "groups: got int"), ({}, {}, 1, "classes: got int"),
    ({}, {}, {"gb200": 1}, r"classes\['gb200'\]: got int"),
    ({}, {"gb200": ["g1"]}, {"gb200": {}}, r"groups\['gb200'\]: got 'g1', which has no hostvars"),
])
def test_bad_input(hostvars: t.Any, groups: t.Any, classes: t.Any, text: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"class_deviations: {text}"):
        use(hostvars, groups, classes)
