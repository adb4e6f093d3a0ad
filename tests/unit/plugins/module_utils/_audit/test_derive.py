# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of any shape: other sources stand in, what is missing is no finding, what is odd is no crash."""
from __future__ import annotations

import copy
import random
import typing as t

import pytest

from tests.unit.plugins.module_utils._audit.cases import VICTIM, audit, found
from tests.unit.plugins.module_utils._audit.fleet import GB200, L40S, Fleet


def fleet() -> Fleet:
    return Fleet((GB200, 3), (L40S, 2))


def test_a_record_of_mlx5_port_alone_gives_no_finding() -> None:
    """It has no QoS and nothing that only the audit reads."""
    one = fleet()
    for kinds in one.records.values():
        del kinds["mlx5_info"]["fabric"], kinds["host_info"], kinds["mlx5_nvconfig"], kinds["roce_gid"]
        for device in kinds["mlx5_info"]["devices"]:
            device["ports"][0].update(qos=None, qos_why="not read by mlx5_port")
    assert found(one) == []
    for kinds in one.records.values():
        kinds["roce_qos"]["ports"][0]["pfc"] = [4]
        kinds["roce_qos"]["findings"] = [{"object": f"global pause of {kinds['roce_qos']['ports'][1]['pci']} (x)",
                                          "got": "rx on", "wanted": "off", "hint": ""}]
    assert {(rule, rail) for rule, _hosts, rail in found(one)} == {("pfc-priority", 0), ("global-pause", 1)}


def test_without_a_plan_any_address_of_the_family_is_the_rails() -> None:
    one = fleet()
    for values in one.values.values():
        values["rail_network_mode"] = "off"
    assert found(one) == []
    port = one.records[VICTIM]["mlx5_info"]["devices"][0]["ports"][0]
    port["gids"] = [gid for gid in port["gids"] if gid["family"] == "ipv6"]
    assert [entry[0] for entry in found(one)] == ["gid-missing"]
    for values in one.values.values():
        values["roce_gid_mode"] = False
    assert found(one) == []


def test_subnets_of_roce_gid_count() -> None:
    one = fleet()
    for values in one.values.values():
        values.update(rail_network_mode="off", roce_gid_subnets=["192.0.2.0/24"])
    assert {rule for rule, _hosts, _rail in found(one)} == {"gid-missing"}


@pytest.mark.parametrize("role", ["mlx5_port", "rail_network", "roce_qos", "roce_gid", "mlx5_nvconfig", "fabric_boot"])
def test_a_role_that_is_off_says_nothing(role: str) -> None:
    one = fleet()
    one.values[VICTIM][f"{role}_mode"] = "off"
    assert found(one) == []


def _places(data: t.Any, path: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from _places(value, (*path, key))


def _set(data: t.Any, path: tuple[t.Any, ...], value: t.Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


@pytest.mark.parametrize("seed", range(40))
def test_a_value_that_is_gone_is_no_crash(seed: int) -> None:
    """Any of the record's values null, or any key missing: the audit says something or nothing, of this host alone."""
    chance, one = random.Random(seed), fleet()
    records = one.records[VICTIM]
    for _number in range(6):
        path = chance.choice([place for place in _places(records) if len(place) > 2])
        _set(records, path, None)
    named = {host for entry in audit(one)["findings"] for host in entry["hosts"]}
    assert named <= {VICTIM}


def test_the_record_is_not_changed() -> None:
    one = fleet()
    before = copy.deepcopy(one.records)
    audit(one)
    assert one.records == before
