# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab import fleet

CLASSES = {"gb200", "l40s", "epyc9754"}
GOOD = """
management: 192.0.2.0/24
leaves: {leaf1: 198.51.0.0/16}
hosts:
  - {name: login1, class: login}
  - {name: gb1, class: gb200, leaf: leaf1, nvlink_domain: nvl1}
"""


def read(tmp_path: Path, text: str) -> fleet.Fleet:
    file = tmp_path / "fleet.yml"
    file.write_text(text, encoding="utf-8")
    return fleet.load(file, CLASSES)


def test_default_fleet_is_the_promised_one() -> None:
    default = fleet.load(fleet.fleet_path("default"), CLASSES)
    count = {name: sum(host.node_class == name for host in default.hosts) for name in (*CLASSES, "login")}
    assert count == {"login": 1, "gb200": 4, "l40s": 2, "epyc9754": 1}
    domains = [host.variables["nvlink_domain"] for host in default.hosts if host.node_class == "gb200"]
    assert sorted(domains.count(name) for name in set(domains)) == [2, 2]


def test_addresses_come_from_the_place_in_the_file(tmp_path: Path) -> None:
    good = read(tmp_path, GOOD)
    gb1 = good.hosts[1]
    assert good.management_address(gb1) == "192.0.2.2"
    assert good.fabric_address() == "192.0.2.254"
    assert good.rail_interface(gb1, 3) == "198.51.3.2/24"
    assert gb1.variables == {"nvlink_domain": "nvl1"}


@pytest.mark.parametrize(("change", "message"), [
    (("name: gb1", "name: GB-1"), r"hosts\[1\].name: got 'GB-1'"),
    (("name: gb1", "name: login1"), "name used twice: login1"),
    (("class: gb200", "class: gb300"), r"hosts\[1\].class: got 'gb300', wanted one of epyc9754, gb200, l40s, login"),
    (("leaf: leaf1,", "leaf: leaf9,"), r"hosts\[1\].leaf: got 'leaf9', wanted one of leaf1"),
    (("192.0.2.0/24", "192.0.2.1/24"), "management: got '192.0.2.1/24', wanted an IPv4 network"),
    (("198.51.0.0/16", "192.0.0.0/16"), "overlap"),
    (("management:", "managment:"), "unknown key managment"),
    (("192.0.2.0/24", "192.0.2.0/30"), "do not fit"),
    (("leaf: leaf1,", "leaf: leaf1, persona: arch,"), r"hosts\[1\].persona: got 'arch', wanted one of debian13"),
    (("leaf: leaf1,", "leaf: leaf1, sudo: never,"), r"hosts\[1\].sudo: got 'never', wanted one of free, password"),
    (("leaves:", "jump: gate9\nleaves:"), "jump: got 'gate9', wanted one of login1, gb1"),
    (("leaves:", "groups: {a: [gb9]}\nleaves:"), "groups.a: got 'gb9', wanted one of login1, gb1, gb200, login"),
    (("leaves:", "groups: {gb200: [gb1]}\nleaves:"), "groups.gb200: got the name of a host or class"),
    (("leaves:", "groups: {a: gb1}\nleaves:"), "groups: got .*, wanted a list of hosts and classes for each name"),
])
def test_each_mistake_names_the_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(fleet.FleetError, match=message):
        read(tmp_path, GOOD.replace(*change))


@pytest.mark.parametrize("text", ["", "[]", "hosts: {", "management: 192.0.2.0/24\nhosts: []"])
def test_files_that_are_no_fleet(tmp_path: Path, text: str) -> None:
    with pytest.raises(fleet.FleetError, match="fleet.yml"):
        read(tmp_path, text)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(fleet.FleetError, match="nowhere.yml"):
        fleet.load(tmp_path / "nowhere.yml", CLASSES)


def test_persona_and_access_are_no_inventory_variables(tmp_path: Path) -> None:
    text = GOOD.replace("leaf: leaf1,", "leaf: leaf1, persona: ubuntu, sudo: password,") + "jump: login1\n"
    found = read(tmp_path, text)
    assert found.hosts[1].variables == {"nvlink_domain": "nvl1"}
    assert (found.hosts[1].persona.owner, found.hosts[1].persona.repository_suite) == ("netplan", "noble")
    assert found.hosts[1].sudo_password
    assert [found.behind_jump(host) for host in found.hosts] == [False, True]
    assert found.host("gb1") == found.hosts[1]
    with pytest.raises(fleet.FleetError, match="host 'gb9': wanted one of login1, gb1"):
        found.host("gb9")


@pytest.mark.parametrize("name", sorted(path.stem for path in fleet.FLEETS.glob("*.yml")))
def test_shipped_fleets_load(name: str) -> None:
    assert fleet.load(fleet.fleet_path(name), CLASSES).hosts
