# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The five odd hosts: each says what is odd with object, got, wanted, from the fixtures of one host each."""
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import propose, table

from tests.unit.plugins.module_utils._discover.case import TRAY_RAILS, Results, classes, l40s, tray


def card_missing() -> Results:
    results = tray()
    results.lose_nic(3)
    return results


def two_speeds() -> Results:
    results = tray()
    results.port(1)["speed_gbps"] = 200.0
    return results


def infiniband() -> Results:
    results = l40s()
    for number in range(2):
        results.port(number)["link_layer"] = "InfiniBand"
    return results


def two_default_routes() -> Results:
    """The finding is host_info's own."""
    results = l40s()
    results.info["findings"] = [{
        "object": "default route (IPv4)", "got": "eth0 via 192.0.2.254; eth1 via 198.51.100.254", "wanted": "one",
        "hint": "take the gateway away from all but one"}]
    return results


def unknown_gpu() -> Results:
    results = l40s()
    for gpu in results.info["gpus"]:
        gpu.update(pci_id="10de:27b8", name="L4")
    return results


@pytest.mark.parametrize(("make", "group", "odd", "got", "wanted"), [
    (card_missing, "gb200", "rails", f"3 ({', '.join(TRAY_RAILS[:3])})", "4"),
    (two_speeds, "gb200", "speed of rail 1 (0002:03:00.0)", "200 Gb/s", "400 Gb/s"),
    (infiniband, "l40s", "link layer of all 2 rails", "InfiniBand", "Ethernet"),
    (two_default_routes, "l40s", "default route (IPv4)", "eth0 via 192.0.2.254; eth1 via 198.51.100.254", "one"),
    (unknown_gpu, "unknown", "GPU 0000:21:00.0", "4 x L4 (10de:27b8)",
     "a GPU of a class: gb200 10de:2941, l40s 10de:26b9"),
])
def test_odd_host(make: t.Callable[[], Results], group: str, odd: str, got: str, wanted: str) -> None:
    fleet = propose.fleet([make().host(), l40s("sound", 2).host()], classes())
    assert fleet.proposals[0].group == group
    found = table.differences(fleet)
    assert [(item["object"], item["got"], item["wanted"]) for item in found] == [(odd, got, wanted)]
    assert found[0]["hint"] and {item["host"] for item in found} == {make().name}
    assert got in table.differences_table(fleet)[1]
