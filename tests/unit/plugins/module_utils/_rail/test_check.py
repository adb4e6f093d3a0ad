# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import argspec, check
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import Request

DEFAULTS = {"owner": "auto", "arp_ignore": 1, "arp_announce": 2, "rp_filter": 2, "disruption_policy": "if_idle",
            "allow_management": False}


def rail(number: int = 0, address: str = "192.0.2.1/24", **more: t.Any) -> dict[str, t.Any]:
    return {"rail": number, "pci": f"000{number}:03:00.0", "address": address, "mtu_bytes": 4200, **more}


def request(*rails: dict[str, t.Any], **more: t.Any) -> Request:
    return argspec.request({**DEFAULTS, "rails": list(rails), **more})


def texts(*rails: dict[str, t.Any], **more: t.Any) -> str:
    return "\n".join(problem.text() for problem in check.values(request(*rails, **more)))


def test_defaults_of_a_rail_with_a_gateway() -> None:
    want, = request(rail(3, gateway="192.0.2.254", pci="0003:03:00.0 ".upper())).rails
    assert (want.table, want.priority, want.destinations, want.pci) == (104, 1004, ("0.0.0.0/0",), "0003:03:00.0")
    assert (want.peer, want.subnet) == ("192.0.2.1", "192.0.2.0/24")
    assert request(rail(address="2001:db8::5/64", gateway="2001:db8::1")).rails[0].peer == "2001:db8::1"
    assert request(rail(gateway="192.0.2.254", destinations=["198.51.100.0/24"])).rails[0].peer == "198.51.100.254"
    assert request(rail(gateway="192.0.2.254", destinations=["198.51.100.7/32"])).rails[0].peer == "198.51.100.7"


def test_sound_rails() -> None:
    assert texts(rail(), rail(1, "198.51.100.1/31", gateway="198.51.100.0"), rail(2, "2001:db8::1/64")) == ""


@pytest.mark.parametrize(("rails", "wanted"), [
    ([], "rails: got none"),
    ([rail(), rail(1, "192.0.2.2/24")], "rails 0 and 1: got 192.0.2.1/24 and 192.0.2.2/24, wanted a subnet for each"),
    ([rail(), rail(1, "198.51.100.1/24", pci="0000:03:00.0")], "PCI address 0000:03:00.0: got 2 rails"),
    ([rail(), rail(0, "198.51.100.1/24", pci="0001:03:00.0")], "rails: number 0: got 2 rails"),
    ([rail(pci="3:0.0")], "rail 0: pci: got '3:0.0'"),
    ([rail(-1, pci="0000:03:00.0")], "the number -1"),
    ([rail(address="192.0.2.0/24")], "192.0.2.0/24, the network's address"),
    ([rail(address="192.0.2.255/24")], "the broadcast address"),
    ([rail(address="2001:db8::/64")], "the routers' anycast address"),
    ([rail(gateway="198.51.100.1")], "gateway: got 198.51.100.1, wanted an address in 192.0.2.0/24"),
    ([rail(gateway="192.0.2.1")], "another address than the rail's own"),
    ([rail(gateway="192.0.2.254", table=254)], "table: got 254"),
    ([rail(gateway="192.0.2.254", priority=32766)], "priority: got 32766"),
    ([rail(gateway="192.0.2.254"), rail(1, "198.51.100.1/24", gateway="198.51.100.2", table=101)], "table 101: got 2"),
])
def test_what_is_refused(rails: list[dict[str, t.Any]], wanted: str) -> None:
    assert wanted in texts(*rails)


def test_sysctls_out_of_range() -> None:
    assert "rp_filter: got 3, wanted 0 to 2" in texts(rail(), rp_filter=3)
    six = request(rail(address="2001:db8::1/64"))
    assert six.sysctls_of(six.rails[0]) == {}


@pytest.mark.parametrize(("more", "wanted"), [
    ({"address": "192.0.2.1"}, "rail 0: address: got '192.0.2.1', wanted an address with its length"),
    ({"address": "x/24"}, "rail 0: address: got 'x/24'"),
    ({"gateway": "x"}, "rail 0: gateway: got 'x', wanted an address"),
    ({"gateway": "192.0.2.254", "destinations": ["x"]}, "rail 0: destinations: got 'x', wanted a network"),
    ({"gateway": "192.0.2.254", "destinations": ["::/0"]}, "wanted a network of IPv4"),
])
def test_what_is_no_address(more: dict[str, t.Any], wanted: str) -> None:
    with pytest.raises(AidcError) as caught:
        request({**rail(), **more})
    assert wanted in str(caught.value)


def test_a_request_is_a_value() -> None:
    assert dataclasses.replace(request(rail())) == request(rail())
