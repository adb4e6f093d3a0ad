# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import typing as t

import netaddr  # type: ignore[import-untyped]
import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import addresses
from hypothesis import given
from hypothesis import strategies as st

Case = tuple[dict[str, dict[str, t.Any]], int, bool]
PCIS = [f"{domain:04x}:03:00.0" for domain in range(8)]


def host(index: int, *subnets: str, **more: t.Any) -> dict[str, t.Any]:
    rails = [{"rail": rail, "pci": PCIS[rail], "subnet": subnet, **more} for rail, subnet in enumerate(subnets)]
    return {"rail_network_rails": rails, "rail_network_node_index": index}


def texts(fleet: dict[str, dict[str, t.Any]]) -> str:
    return "\n".join(problem.text() for problem in addresses.plan(fleet)[1])


def address(fleet: dict[str, dict[str, t.Any]], name: str = "h1") -> str:
    options, problems = addresses.plan(fleet)
    assert problems == []
    return str(options[name][0]["address"])


def test_the_nth_address_of_the_subnet() -> None:
    fleet = {"h1": host(2, "192.0.2.0/25", "2001:db8:1::/64"), "h2": host(3, "192.0.2.0/25")}
    options, problems = addresses.plan(fleet)
    assert problems == []
    assert [rail["address"] for rail in options["h1"]] == ["192.0.2.2/25", "2001:db8:1::2/64"]
    assert options["h2"] == [{"rail": 0, "pci": PCIS[0], "address": "192.0.2.3/25"}]


def test_subnets_by_rail_and_an_explicit_one_before_them() -> None:
    values = host(1, "192.0.2.0/24", "198.51.100.0/24")
    del values["rail_network_rails"][0]["subnet"]
    values["rail_network_subnets"] = ["203.0.113.0/24", "10.0.0.0/8"]
    found = [rail["address"] for rail in addresses.plan({"h1": values})[0]["h1"]]
    assert found == ["203.0.113.1/24", "198.51.100.1/24"]
    values["rail_network_subnets"] = []
    assert "h1: rail_network_rails[0].subnet: got None" in texts({"h1": values})


def test_pairs_and_which_end_is_the_leaf() -> None:
    low = host(3, "192.0.2.0/24", prefix_length=31)
    assert addresses.plan({"h1": low})[0]["h1"] == [
        {"rail": 0, "pci": PCIS[0], "address": "192.0.2.7/31", "gateway": "192.0.2.6", "destinations": []}]
    high = {**low, "rail_network_leaf_end": "high"}
    assert addresses.plan({"h1": high})[0]["h1"][0]["address"] == "192.0.2.6/31"
    assert address({"h1": host(0, "2001:db8::/64", prefix_length=127)}) == "2001:db8::1/127"
    # A subnet of a host's own that is one pair.
    assert address({"h1": host(9, "192.0.2.8/31")}) == "192.0.2.9/31"


@pytest.mark.parametrize(("fleet", "wanted"), [
    ({"h1": host(0, "192.0.2.0/24")}, "0 is the network's own address"),
    ({"h1": host(255, "192.0.2.0/24")}, "255 is the broadcast address"),
    ({"h1": host(256, "192.0.2.0/24")}, "256 is outside the subnet"),
    ({"h1": host(128, "192.0.2.0/24", prefix_length=31)}, "h1: rail_network_node_index: got 128, wanted 0 to 127"),
    ({"h1": host(-1, "192.0.2.0/24")}, "-1 is outside the subnet"),
    ({"h1": host(True, "192.0.2.0/24")}, "got True, wanted the host's number"),
    ({"h1": host(1, "192.0.2.0/24", "192.0.2.0/24")}, "in one subnet the wrong port answers"),
    ({"h1": host(1, "192.0.2.0/24", "192.0.2.128/25")}, "rails 0 and 1: got 192.0.2.0/24 and 192.0.2.128/25"),
    ({"h1": host(1, "192.0.2.0/24"), "h2": host(1, "192.0.2.0/24")},
     "address 192.0.2.1: got rail 0 of h1 and rail 0 of h2"),
    ({"h1": host(1, "192.0.2.0/24"), "h2": host(2, "192.0.2.0/25")}, "the same subnet, or ones that do not overlap"),
    ({"h1": host(1, "192.0.2.0/24", "198.51.100.0/24"), "h2": host(2, "198.51.100.0/24")},
     "subnet 198.51.100.0/24: got rail 1 of h1 and rail 0 of h2, wanted one rail"),
    ({"h1": host(1, "192.0.2.0/24", gateway="198.51.100.1")}, "gateway: got '198.51.100.1', wanted an address in"),
    ({"h1": host(1, "192.0.2.0/24", gateway="192.0.2.1")}, "another address than the host's own"),
    ({"h1": host(1, "192.0.2.0/24", gateway="192.0.2.2"), "h2": host(2, "192.0.2.0/24", gateway="192.0.2.254")},
     "gateway 192.0.2.2 of rail 0 of h1: got the address of rail 0 of h2, wanted the leaf's address"),
    ({"h1": host(1, "192.0.2.0/24", prefix_length=30)}, "prefix_length: got 30, wanted 31"),
    ({"h1": host(1, "192.0.2.1/24")}, "no bit set beyond its length"),
    ({"h1": host(1, "192.0.2.0")}, "rail_network_rails[0].subnet: got '192.0.2.0', wanted a network"),
    ({"h1": host(1, "192.0.2.0/24", destinations=["x"])}, "destinations[0]: got 'x', wanted a network"),
    ({"h1": host(1, "192.0.2.0/24", destinations=7)}, "destinations: got 7, wanted a list of networks"),
    ({"h1": host(1, "x")}, "got 'x', wanted a network such as"),
    ({"h1": host(1, "192.0.2.0/24", extra=1)}, "got 'extra', wanted keys of"),
    ({"h1": {"rail_network_rails": None}}, "h1: rail_network_rails: got None"),
    ({"h1": {"rail_network_rails": [1], "rail_network_node_index": 1}}, "got 1, wanted a mapping with rail and pci"),
    ({"h1": {"rail_network_rails": [{"rail": 0, "pci": 180.0}]}}, "wanted a PCI address in lower case"),
    ({"h1": {"rail_network_rails": [{"rail": n, "pci": PCIS[0], "subnet": f"192.0.{n}.0/24"} for n in (1, 2)],
             "rail_network_node_index": 1}}, f"{PCIS[0]} for rails 1 and 2"),
    ({"h1": {"rail_network_rails": [{"rail": 1, "pci": PCIS[n], "subnet": f"192.0.{n}.0/24"} for n in (1, 2)],
             "rail_network_node_index": 1}}, "rail 1 twice"),
])
def test_what_is_refused(fleet: dict[str, dict[str, t.Any]], wanted: str) -> None:
    assert wanted in texts(fleet)


def test_without_netaddr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "netaddr", None)
    assert "netaddr: got not installed" in texts({"h1": host(1, "192.0.2.0/24")})


@st.composite
def fleets(draw: st.DrawFn) -> Case:
    """A sound fleet: some hosts, some rails, each rail a subnet of its own out of one block."""
    six, pairs = draw(st.booleans()), draw(st.booleans())
    rails, width = draw(st.integers(1, 8)), draw(st.integers(4, 12))
    block = netaddr.IPNetwork("2001:db8::/64" if six else "10.0.0.0/8")
    subnets = list(block.subnet((128 if six else 32) - width, count=rails))
    most = 2 ** (width - 1) - 1 if pairs else 2 ** width - 2
    numbers = draw(st.lists(st.integers(0 if pairs else 1, most), min_size=1, max_size=12, unique=True))
    more = {"prefix_length": 127 if six else 31} if pairs else {}
    fleet = {f"h{number}": host(number, *map(str, subnets), **more) for number in numbers}
    for values in fleet.values():
        values["rail_network_leaf_end"] = draw(st.sampled_from(["low", "high"])) if pairs else "low"
    return fleet, rails, pairs


@given(fleets())
def test_a_sound_fleet_has_an_address_of_its_own_for_each_port(case: Case) -> None:
    fleet, rails, pairs = case
    options, problems = addresses.plan(fleet)
    assert problems == []
    seen = [ipaddress.ip_interface(rail["address"]) for entry in options.values() for rail in entry]
    assert len({item.ip for item in seen}) == len(fleet) * rails
    for name, values in fleet.items():
        for rail, entry in enumerate(options[name]):
            own = ipaddress.ip_interface(entry["address"])
            assert own.ip in ipaddress.ip_network(values["rail_network_rails"][rail]["subnet"])
            if pairs:
                assert ipaddress.ip_address(entry["gateway"]) in own.network
                assert int(own.ip) ^ int(ipaddress.ip_address(entry["gateway"])) == 1
            else:
                assert own.ip != own.network.network_address
                assert own.version == 6 or own.ip != own.network.broadcast_address


@given(fleets(), st.data())
def test_an_address_that_is_given_twice_is_always_found(
    case: Case, data: st.DataObject
) -> None:
    fleet, rails, _pairs = case
    name = data.draw(st.sampled_from(sorted(fleet)))
    found = texts({**fleet, "twin": fleet[name]})
    assert found.count(f"of {name} and rail") == rails or found.count("of twin") >= rails


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["rail", "pci", "subnet", "gateway", "prefix_length", "destinations"]), inner),
                    max_leaves=12))
def test_any_value_gives_a_problem_and_no_crash(value: t.Any) -> None:
    _options, problems = addresses.plan({"h1": {"rail_network_rails": [value], "rail_network_node_index": value}})
    assert problems
