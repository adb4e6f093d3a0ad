# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import rails
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover.model import NodeClass

from tests.unit.plugins.module_utils._discover.case import TRAY_RAILS, Results, classes, l40s, tray

GB200, L40S = classes()[1], classes()[2]


def chosen(results: Results, one: NodeClass = GB200) -> tuple[list[str], list[tuple[str, str, str]]]:
    ports, found = rails.choose(results.host(), one)
    return [port.pci for port in ports], [(item.object, item.got, item.wanted) for item in found]


def test_rails_in_pci_order_without_the_bluefields() -> None:
    results = tray()
    results.info["nics"].reverse()
    assert chosen(results) == (list(TRAY_RAILS), [])


def test_a_card_is_missing() -> None:
    results = tray()
    results.lose_nic(2)
    pcis, found = chosen(results)
    assert pcis == [TRAY_RAILS[0], TRAY_RAILS[1], TRAY_RAILS[3]]
    assert found == [("rails", f"3 ({', '.join(pcis)})", "4")]


def test_two_speeds() -> None:
    results = tray()
    results.port(3)["speed_gbps"] = 200.0
    pcis, found = chosen(results)
    assert pcis == list(TRAY_RAILS)
    assert found == [("speed of rail 3 (0012:03:00.0)", "200 Gb/s", "400 Gb/s")]


def test_all_rails_at_another_speed_are_one_finding() -> None:
    results = tray()
    for number in range(4):
        results.port(number)["speed_gbps"] = 200.0
    assert chosen(results)[1] == [("speed of all 4 rails", "200 Gb/s", "400 Gb/s")]


def test_infiniband() -> None:
    results = tray()
    for number in range(4):
        results.port(number)["link_layer"] = "InfiniBand"
    assert chosen(results)[1] == [("link layer of all 4 rails", "InfiniBand", "Ethernet")]
    results.port(0)["link_layer"] = "Ethernet"
    assert [item[0] for item in chosen(results)[1]] == [f"link layer of rail {number} ({TRAY_RAILS[number]})"
                                                        for number in (1, 2, 3)]


def test_a_port_that_is_down_is_a_rail_of_unknown_speed() -> None:
    results = tray()
    results.port(1).update(speed_gbps=None, state="DOWN")
    pcis, found = chosen(results)
    assert pcis == list(TRAY_RAILS)
    assert found == [("speed of rail 1 (0002:03:00.0)", "port DOWN", "400 Gb/s")]


def test_slower_cards_are_of_the_storage_network() -> None:
    results = tray()
    results.nic("0000:01:00.0", 100.0)
    results.nic("0000:01:00.1", 100.0)
    assert chosen(results) == (list(TRAY_RAILS), [])


def test_more_cards_of_one_speed_than_rails() -> None:
    results = tray()
    results.nic("0020:03:00.0", 400.0)
    pcis, found = chosen(results)
    assert pcis == [*TRAY_RAILS, "0020:03:00.0"]
    assert found[0][0] == "rails" and found[0][2] == "4"


def test_too_few_of_the_fastest() -> None:
    """Three at 400 and two at 100: the fastest four, and the fourth is odd."""
    results = tray()
    results.port(3)["speed_gbps"] = 100.0
    results.nic("0000:01:00.0", 100.0)
    pcis, found = chosen(results)
    assert len(pcis) == 4 and set(TRAY_RAILS[:3]) < set(pcis)
    assert [item[1:] for item in found] == [("100 Gb/s", "400 Gb/s")]


def test_a_card_that_carries_management_is_none() -> None:
    results = l40s()
    results.port(0)["excluded"] = "carries the default route"
    pcis, found = chosen(results, L40S)
    assert pcis == ["0000:c1:00.0"]
    assert found == [("rails", "1 (0000:c1:00.0)", "2"),
                     ("NIC 0000:41:00.0", "carries the default route", "a free port")]


@pytest.mark.parametrize(("speed", "width", "odd"), [
    (16.0, 16, True), (32.0, 8, True), (64.0, 16, False), (None, None, False)])
def test_pcie(speed: float | None, width: int | None, odd: bool) -> None:
    results = tray()
    results.mlx5["devices"][0]["pcie"] = {"current_speed_gts": speed, "current_width": width}
    assert [item[0] for item in chosen(results)[1]] == (["PCIe link of rail 0 (0000:03:00.0)"] if odd else [])


def test_a_class_that_says_little() -> None:
    one = dataclasses.replace(GB200, rail_count=0, rail_speed_gbps=0, rail_link_layer="", rail_pcie_width=0)
    results = tray()
    results.port(0)["speed_gbps"] = 200.0
    assert chosen(results, one) == (list(TRAY_RAILS), [("speed of rail 0 (0000:03:00.0)", "200 Gb/s", "400 Gb/s")])
