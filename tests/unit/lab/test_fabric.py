# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab import doctor, fabric, fleet, lifecycle
from lab.hardware.spec import node_spec, shape_names
from lab.instance import LabError

FLEET = fleet.load(fleet.fleet_path("default"), set(shape_names()))


def test_400_gbps_are_40_mbps() -> None:
    assert fabric.scaled_bit(400) == 40_000_000


def test_rates_of_the_default_fleet() -> None:
    # 16 rails of 400, 4 of 200, 1 of 100 Gb/s, divided by 10,000.
    assert doctor.fleet_gbps(FLEET) == pytest.approx((16 * 400 + 4 * 200 + 100) / 10_000)


def cables_of(host: fleet.Host) -> list[fabric.Port]:
    return lifecycle.cables(host, node_spec(host.node_class, host.name, host.number) if host.leaf else None)


def test_every_cable_has_a_name_and_a_mac_of_its_own() -> None:
    cables = [port for host in FLEET.hosts for port in cables_of(host)]
    for key in ("fabric_interface", "mac"):
        values = [getattr(port, key) for port in cables]
        assert len(values) == len(set(values)) == 8 + 21, key
    assert all(len(port.fabric_interface) <= 15 and len(port.interface) <= 15 for port in cables)


def test_rails_of_one_number_and_leaf_meet_on_one_bridge() -> None:
    first, second = map(cables_of, FLEET.hosts[1:3])
    assert [port.bridge for port in first] == [port.bridge for port in second]
    assert len({port.bridge for port in first}) == 5
    assert first[0].rate_gbps is None
    assert {port.rate_gbps for port in first[1:]} == {400}


def test_a_tools_error_carries_its_own_words() -> None:
    with pytest.raises(LabError, match=r"ip -n aidc-never-there link show: .*aidc-never-there"):
        fabric.run(["ip", "-n", "aidc-never-there", "link", "show"])
