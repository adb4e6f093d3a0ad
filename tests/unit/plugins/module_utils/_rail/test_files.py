# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of each owner, word for word, and what is read out of them again."""
from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import ConfigFile, Link, Networkd, Saved
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import (
    detect,
    netplan,
    networkd,
    networkmanager,
    sysctl,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import Node, Port, Present, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.owner import saves

HEAD = "# Written by aidc.gpu_cluster.rail_network, which rewrites it: do not edit.\n"
PLAIN = Want(1, "0002:03:00.0", "203.0.113.1/24", 9000)
ROUTED = Want(0, "0000:03:00.0", "192.0.2.1/31", 4200, "192.0.2.0", ("198.51.100.0/24",), 101, 1001)
SIX = Want(2, "0010:03:00.0", "2001:db8::2/64", 4200, "2001:db8::1", ("::/0",), 103, 1003)

DROPIN = f"""{HEAD}[Link]
MTUBytes=4200

[Network]
Address=192.0.2.1/31
ConfigureWithoutCarrier=yes

[RoutingPolicyRule]
From=192.0.2.1
Table=101
Priority=1001

[Route]
Destination=192.0.2.0/31
Scope=link
Table=101

[Route]
Destination=198.51.100.0/24
Gateway=192.0.2.0
Table=101
"""
NETPLAN = f"""{HEAD}network:
  version: 2
  ethernets:
    "rail0": {{"addresses": ["192.0.2.1/31"], "mtu": 4200, "ignore-carrier": true, \
"routing-policy": [{{"from": "192.0.2.1", "table": 101, "priority": 1001}}], \
"routes": [{{"to": "192.0.2.0/31", "table": 101, "scope": "link"}}, \
{{"to": "198.51.100.0/24", "via": "192.0.2.0", "table": 101}}]}}
"""
PROFILE = f"""{HEAD}[connection]
id=aidc-rail0
uuid={networkmanager.identity(0)}
type=ethernet
interface-name=rail0
autoconnect=true
autoconnect-priority=100

[ethernet]
mtu=4200

[ipv4]
method=manual
address1=192.0.2.1/31
never-default=true
route1=192.0.2.0/31
route1_options=table=101
route2=198.51.100.0/24,192.0.2.0
route2_options=table=101
routing-rule1=priority 1001 from 192.0.2.1 table 101

[ipv6]
method=link-local
addr-gen-mode=eui64
"""


def test_texts() -> None:
    assert networkd.dropin_text(ROUTED) == DROPIN
    assert netplan.text({"rail0": netplan.definition(ROUTED)}) == NETPLAN
    assert networkmanager.text(ROUTED, "rail0") == PROFILE
    assert networkd.own_text(PLAIN, "rail1") == (
        f"{HEAD}[Match]\nName=rail1\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=203.0.113.1/24\n"
        "ConfigureWithoutCarrier=yes\n")
    assert networkmanager.conf_text(["rail1", "rail0"]) == (
        f"{HEAD}[device-aidc-rails]\nmatch-device=interface-name:rail0,interface-name:rail1\nignore-carrier=yes\n")
    assert sysctl.text({"rail0": {"rp_filter": 2, "arp_ignore": 1}}) == (
        f"{HEAD}net/ipv4/conf/rail0/arp_ignore = 1\nnet/ipv4/conf/rail0/rp_filter = 2\n")


def test_ipv6_has_no_scope_and_networkmanager_no_ipv4() -> None:
    assert "Scope" not in networkd.dropin_text(SIX)
    assert "scope" not in netplan.definition(SIX)["routes"][0]
    text = networkmanager.text(SIX, "rail2")
    assert "[ipv4]\nmethod=disabled\n" in text
    assert "[ipv6]\nmethod=manual\naddress1=2001:db8::2/64\n" in text


@pytest.mark.parametrize("want", [PLAIN, ROUTED, SIX])
def test_what_is_written_is_read_again(want: Want) -> None:
    entry = netplan.read(netplan.text({"x": netplan.definition(want)}))["x"]
    found = {
        "networkd": networkd.stanza([ConfigFile("f", networkd.dropin_text(want))]),
        "netplan": netplan.stanza(entry),
        "networkmanager": networkmanager.stanza(networkmanager.text(want, "x"), True),
    }
    for owner, stanza in found.items():
        assert saves(stanza, want) == [], owner
        other = dataclasses.replace(want, mtu_bytes=1500, address=want.address.replace("1/", "7/").replace("2/", "7/"))
        assert [what for what, _got, _wanted in saves(stanza, other)][:2] == ["address", "MTU"]
    assert networkmanager.ignored(networkmanager.conf_text(["a", "b"])) == {"a", "b"}
    assert sysctl.read(sysctl.text({"a.5": {"rp_filter": 2}})) == {"a.5": {"rp_filter": 2}}


def node(main: str, text: str, *others: str, **files: str) -> Node:
    links = {name: Link(name, "configured", "routable", main) for name in ("rail0", *others)}
    saved = Saved(main, (ConfigFile(main, text),))
    return Node({ROUTED.pci: Port(ROUTED.pci, "rail0")}, networkd=Networkd("active", links, {main: saved}),
                files={path: Present(content, 0o644) for path, content in files.items()})


GLOB = "/usr/lib/systemd/network/80-ethernet.network"


@pytest.mark.parametrize(("main", "text", "path"), [
    ("/etc/systemd/network/20-r.network", "[Match]\nName=rail0\n",
     "/etc/systemd/network/20-r.network.d/60-aidc-rail.conf"),
    ("/run/systemd/network/20-r.network", "[Match]\nMACAddress=02:00:00:00:00:01\n",
     "/etc/systemd/network/20-r.network.d/60-aidc-rail.conf"),
    # Such a file may match another port tomorrow, which would then get the rail's address.
    (GLOB, "[Match]\nName=r*\n", "/etc/systemd/network/05-aidc-rail0.network"),
    (GLOB, "[Match]\nType=ether\n", "/etc/systemd/network/05-aidc-rail0.network"),
])
def test_a_drop_in_only_for_a_file_of_this_port_alone(main: str, text: str, path: str) -> None:
    owner = networkd.Networkd(node(main, text, "rail1"))
    assert owner.path(ROUTED) == path
    assert owner.check(ROUTED) == []


def test_a_file_that_is_read_before_ours() -> None:
    problem, = networkd.Networkd(node("/etc/systemd/network/01-all.network", "[Match]\nName=*\n")).check(ROUTED)
    assert "01-all.network, which matches more ports and is read first" in problem.got


def test_a_file_that_is_not_ours_stands_there() -> None:
    path = "/etc/systemd/network/20-r.network.d/60-aidc-rail.conf"
    owner = networkd.Networkd(node("/etc/systemd/network/20-r.network", "[Match]\nName=rail0\n", **{path: "[Link]\n"}))
    assert owner.check(ROUTED)[0].got == "a file that is not ours"


def test_two_netplan_ids_on_one_port() -> None:
    main = "/run/systemd/network/10-netplan-rail0.network"
    there = dataclasses.replace(node(main, ""), netplan={"rail0": {}, "mine": {"match": {"name": "rail*"}}})
    problem, = netplan.Netplan(there).check(ROUTED)
    assert problem.got == "rail0, mine"
    assert netplan.id_of(main) == "rail0"
    assert netplan.id_of("/etc/systemd/network/20-r.network") is None


def test_networkd_without_udev() -> None:
    there = node("/etc/systemd/network/20-r.network", "")
    there = dataclasses.replace(there, networkd=Networkd("active", {"rail0": Link("rail0", "pending")}))
    problem = detect.claim(there, "rail0").problem
    assert problem is not None
    assert "is udev running" in problem.hint


def test_ifupdown_and_netplan_over_networkmanager_are_refused() -> None:
    found = detect.claim(Node(ifupdown=("rail0",)), "rail0").problem
    assert found is not None
    assert "ifupdown" in found.got
