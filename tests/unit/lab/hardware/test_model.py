# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lab.hardware import model, netlink
from lab.hardware.netlink import AddressEvent, Event, LinkEvent
from lab.hardware.spec import node_spec

SPEC = node_spec("l40s", "h", 1)
FIRST = SPEC.rails[0]
RAIL = LinkEvent(True, 7, FIRST.netdev, FIRST.mac, "veth", 99)


class Source:
    """Stands for the netlink reader: ``queue`` None means that events were lost."""

    def __init__(self, dump: list[Event]) -> None:
        self.all = dump
        self.queue: list[Event] | None = []

    def drain(self) -> list[Event] | None:
        events, self.queue = self.queue, []
        return events

    def dump(self) -> list[Event]:
        return self.all


def address(text: str, index: int = 7, new: bool = True) -> AddressEvent:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    return AddressEvent(new, index, socket.inet_pton(family, text))


def make(tmp_path: Path, *dump: Event) -> tuple[model.Node, Source]:
    directory = tmp_path / "class/net" / FIRST.netdev
    directory.mkdir(parents=True)
    (directory / "mtu").write_text("1500\n")
    (directory / "carrier").write_text("1\n")
    source = Source(list(dump))
    return model.Node(SPEC, str(tmp_path), source), source


def tails(node: model.Node, rail: int = 0) -> list[tuple[int, str]]:
    return [(index, entry.gid.hex()[-4:]) for index, entry in node.tables[rail].used() if entry.type == "RoCE v2"]


@pytest.mark.parametrize(("mtu", "number"), [
    (0, 0), (351, 0), (352, 1), (607, 1), (608, 2), (1024, 2), (1119, 2), (1120, 3), (1500, 3), (2143, 3), (2144, 4),
    (4191, 4), (4192, 5), (4200, 5), (9000, 5), (65535, 5),
])
def test_active_mtu(mtu: int, number: int) -> None:
    assert model.active_mtu(mtu) == number


def test_port_up_down_and_gone(tmp_path: Path) -> None:
    node, source = make(tmp_path, RAIL)
    port = node.port(FIRST)
    assert (port.state, port.phys_state, port.rate_text) == ("4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)")
    (tmp_path / "class/net" / FIRST.netdev / "carrier").unlink()
    port = node.port(FIRST)
    assert (port.state, port.phys_state, port.rate_text) == ("1: DOWN", "3: Disabled", "40 Gb/sec (4X QDR)")
    assert node.query(FIRST)["ports"][0]["active_mtu"] == 3
    source.queue = [LinkEvent(False, 7)]
    node.refresh()
    assert node.netdev(0) == "" and node.query(FIRST)["ports"][0]["active_mtu"] == 0


def test_query_answers(tmp_path: Path) -> None:
    node, _source = make(tmp_path, RAIL, address("192.0.2.6"))
    answer = node.query(FIRST)
    assert (answer["hca_id"], answer["vendor_id"], answer["vendor_part_id"]) == ("mlx5_0", 0x02C9, 4129)
    port = answer["ports"][0]
    assert (port["state"], port["active_width"], port["active_speed"], port["gid_tbl_len"]) == (4, 2, 64, 255)
    assert port["gids"][3] == [3, "0000:0000:0000:0000:0000:ffff:c000:0206", "RoCE v2"]


def test_first_reading_takes_ipv4_before_ipv6(tmp_path: Path) -> None:
    node, _source = make(tmp_path, RAIL, address("fd00::9"), address("192.0.2.6"))
    assert tails(node)[1:] == [(3, "0206"), (5, "0009")]


def test_lost_events_keep_slots(tmp_path: Path) -> None:
    node, source = make(tmp_path, RAIL, address("192.0.2.1"), address("192.0.2.2"))
    source.all, source.queue = [RAIL, address("192.0.2.3"), address("192.0.2.2")], None
    node.refresh()
    assert tails(node)[1:] == [(3, "0203"), (5, "0202")]
    source.all, source.queue = [], None
    node.refresh()
    assert tails(node) == [] and node.netdev(0) == ""


def test_new_mac_starts_the_table_over(tmp_path: Path) -> None:
    node, source = make(tmp_path, RAIL, address("192.0.2.1"), address("192.0.2.2"))
    source.queue = [address("192.0.2.1", new=False), LinkEvent(True, 7, FIRST.netdev, "b8:3f:d2:00:00:ff", "veth", 99)]
    node.refresh()
    assert tails(node) == [(1, "00ff"), (3, "0202")]


def test_rename_keeps_the_port(tmp_path: Path) -> None:
    node, source = make(tmp_path, RAIL, address("192.0.2.1"))
    source.queue = [LinkEvent(True, 7, "rail0", FIRST.mac, "veth", 99)]
    node.refresh()
    assert (node.netdev(0), node.rail_of_name("rail0"), node.rail_of_name(FIRST.netdev)) == ("rail0", 0, None)
    assert tails(node)[1:] == [(3, "0201")]


def test_stacked_netdevs_only(tmp_path: Path) -> None:
    """A VLAN's addresses are appended; a veth's peer, whose link is the rail too, has no part in it."""
    node, source = make(tmp_path, RAIL)
    source.queue = [
        LinkEvent(True, 8, "v100", FIRST.mac, "vlan", 7), LinkEvent(True, 9, "peer", "02:00:00:00:00:01", "veth", 7),
        address("192.0.2.8", 8), address("192.0.2.9", 9), address("192.0.2.7", 7)]
    node.refresh()
    assert tails(node)[1:] == [(3, "0208"), (5, "0207")]
    source.queue = [LinkEvent(False, 8)]
    node.refresh()
    assert tails(node)[1:] == [(5, "0207")]


def attribute(kind: int, data: bytes) -> bytes:
    return netlink.ATTRIBUTE.pack(4 + len(data), kind) + data + bytes(-len(data) % 4)


def test_netlink_messages() -> None:
    info = attribute(netlink.IFLA_LINKINFO | 0x8000, attribute(netlink.IFLA_INFO_KIND, b"macvlan\0"))
    body = netlink.IFINFO.pack(0, 1, 8, 0, 0) + attribute(netlink.IFLA_IFNAME, b"mv0\0") \
        + attribute(netlink.IFLA_ADDRESS, bytes(5) + b"\1") + attribute(netlink.IFLA_LINK, b"\7\0\0\0") + info
    assert netlink.parse(netlink.RTM_NEWLINK, body) == LinkEvent(True, 8, "mv0", "00:00:00:00:00:01", "macvlan", 7)
    # A port leaving a bridge is told with the bridge family; the netdev stays.
    assert netlink.parse(netlink.RTM_DELLINK, b"\7" + body[1:]) is None
    peer = netlink.IFADDR.pack(socket.AF_INET, 32, 0, 0, 7) + attribute(1, b"\1\2\3\4") + attribute(2, b"\5\6\7\x08")
    assert netlink.parse(netlink.RTM_NEWADDR, peer) == AddressEvent(True, 7, b"\1\2\3\4")
    six = netlink.IFADDR.pack(socket.AF_INET6, 64, 0, 0, 7) + attribute(1, bytes(16))
    assert netlink.parse(netlink.RTM_DELADDR, six) == AddressEvent(False, 7, bytes(16))
    message = netlink.NLMSG.pack(16 + len(six), netlink.RTM_NEWADDR, 0, 0, 0) + six
    assert [kind for kind, _flags, _body in netlink.messages(message * 2 + b"\0" * 3)] == [20, 20]
