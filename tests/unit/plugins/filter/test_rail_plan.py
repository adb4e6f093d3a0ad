# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter import rail_plan

RAILS = [{"rail": 0, "pci": "0000:03:00.0", "subnet": "192.0.2.0/24"}]


def use(hostvars: t.Any, hosts: t.Any) -> dict[str, t.Any]:
    found: dict[str, t.Any] = rail_plan.FilterModule().filters()["rail_plan"](hostvars, hosts)
    return found


def test_hosts_without_rails_have_no_part() -> None:
    hostvars = {"h1": {"rail_network_rails": RAILS, "rail_network_node_index": 1}, "login": {}}
    assert use(hostvars, ["h1", "login"]) == {
        "hosts": {"h1": [{"rail": 0, "pci": "0000:03:00.0", "address": "192.0.2.1/24"}]}, "problems": []}


def test_problems_are_texts() -> None:
    problems = use({"h1": {"rail_network_rails": RAILS}}, ["h1"])["problems"]
    assert problems == ["h1: rail_network_node_index: got None, wanted the host's number in its subnets"]


@pytest.mark.parametrize(("hostvars", "hosts"), [(1, []), ({}, 1), ({}, ["h1"])])
def test_bad_input(hostvars: t.Any, hosts: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="rail_plan: "):
        use(hostvars, hosts)
