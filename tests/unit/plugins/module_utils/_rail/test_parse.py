# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd import parse as networkd_parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import Networkd
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail import networkmanager, parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.detect import claim
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import Address, NetworkManager, Node, Proof
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.netplan import ids_for, stanza
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.netplan_yaml import ethernets

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
FIELD = pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")

ADDR = """[{"ifname":"rail0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":4200,"addr_info":[
 {"family":"inet","local":"192.0.2.1","prefixlen":24,"scope":"global","valid_life_time":4294967295},
 {"family":"inet","local":"192.0.2.77","prefixlen":24,"scope":"global","dynamic":true,"valid_life_time":3000},
 {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"},{}]},
 {"ifname":"rail1","flags":["BROADCAST"],"mtu":1500,"addr_info":[]}]"""


def test_addresses() -> None:
    found = parse.addresses(ADDR)
    assert found["rail0"].addresses == (Address("192.0.2.1/24"), Address("192.0.2.77/24", True))
    assert (found["rail0"].up, found["rail0"].carrier, found["rail0"].mtu_bytes) == (True, True, 4200)
    assert (found["rail1"].up, found["rail1"].carrier) == (False, False)


def test_rules() -> None:
    texts, priorities = parse.rules(
        '[{"priority":0,"src":"all","table":"local"},{"priority":1001,"src":"192.0.2.1","table":"101"},'
        '{"priority":1002,"src":"198.51.100.0","srclen":24,"table":"102","protocol":"static"}]\n')
    assert texts == ("priority 1001 from 192.0.2.1 table 101", "priority 1002 from 198.51.100.0/24 table 102")
    assert priorities == (0, 1001, 1002)


def test_routes_of_numbered_tables() -> None:
    text = ('[{"dst":"default","gateway":"192.0.2.254","dev":"rail0","table":"101","flags":[]},'
            '{"dst":"192.0.2.0/24","dev":"rail0","table":"101","scope":"link"},{"dst":"192.0.2.9","dev":"rail0","table":"7"},'
            '{"dst":"192.0.2.0/24","dev":"rail0"},{"type":"local","dst":"192.0.2.1","dev":"rail0","table":"local"}]')
    assert parse.routes(text, 4) == (
        ("rail0", "0.0.0.0/0 via 192.0.2.254 table 101"), ("rail0", "192.0.2.0/24 table 101"),
        ("rail0", "192.0.2.9/32 table 7"))
    assert parse.routes('[{"dst":"default","gateway":"2001:db8::1","dev":"r","table":"1"}]', 6)[0][1].startswith("::/0")


def test_nmcli_escapes_colons_and_backslashes() -> None:
    text = "rail0:ethernet:connected:a\\:b\\\\\nlo:loopback:connected (externally):lo\neth1:ethernet:unmanaged:\n"
    assert parse.devices(text) == {"rail0": ("connected", "a:b\\"), "lo": ("connected (externally)", "lo"),
                                   "eth1": ("unmanaged", "")}


@pytest.mark.parametrize("reader", [parse.addresses, parse.rules, parse.route_get, ethernets,
                                    lambda text: parse.routes(text, 4)])
@pytest.mark.parametrize("text", ["garbage", "{", '{"a": 1}', "[1]", '[{"x": 1}, 2]'])
def test_garbage_is_told_apart(reader: object, text: str) -> None:
    with pytest.raises(ValueError):
        reader(text)  # type: ignore[operator]


@pytest.mark.parametrize("reader", [parse.devices, parse.connections])
def test_garbage_of_nmcli(reader: object) -> None:
    with pytest.raises(ValueError, match="a line with 2 fields, not "):
        reader("Error: NetworkManager is not running.")  # type: ignore[operator]


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")


@FIELD
def test_field_owner_by_networkd_and_networkmanager() -> None:
    networkd = Networkd("active", networkd_parse.links(sample("networkctl_json-1")))
    manager = NetworkManager(True, parse.devices(sample("nmcli_dev-1")), parse.connections(sample("nmcli_con-1")))
    by_networkd, by_manager = Node(networkd=networkd), Node(manager=manager)
    assert claim(by_networkd, "ens1f0np0").owner == "networkd"
    assert claim(by_networkd, "lo").owner is None
    assert [claim(by_manager, name).owner for name in ("ens1f0np0", "ens2f0np0", "eth0")] == [
        "networkmanager", "networkmanager", None]
    both = claim(Node(networkd=networkd, manager=manager), "ens1f0np0")
    assert both.problem is not None
    assert both.problem.got == "systemd-networkd and NetworkManager"
    # No carrier is no reason to say that it is nobody's; unmanaged is.
    without = Node(manager=NetworkManager(True, parse.devices(sample("nmcli_dev-2"))))
    assert [claim(without, name).owner for name in ("ens1f0np0", "ens2f0np0", "eth0")] == [
        "networkmanager", None, "networkmanager"]
    paths = {one.name: one.path for one in manager.connections}
    assert paths["Wired connection 2"].endswith("/Wired connection 2.nmconnection")


@FIELD
@pytest.mark.parametrize("name", ["networkctl_list-1", "networkctl_list-2", "networkctl_list-3", "netplan_status-1",
                                  "netplan_diff-1", "ifquery-1", "nmcli_show-1", "nmcli_show-2"])
def test_field_output_of_another_question_is_refused(name: str) -> None:
    """These are not what we ask: a table for people, or an answer that is known to be wrong (host-setup.md 1.4)."""
    for reader in (networkd_parse.links, parse.addresses, parse.rules, ethernets):
        with pytest.raises(ValueError):
            reader(sample(name))


@FIELD
def test_field_netplan_get_with_two_ids_on_one_port() -> None:
    found = ethernets(sample("netplan_get-1"))
    assert ids_for(found, "ens2f0np0") == ["ens2f0np0", "rail1"]
    assert ids_for(found, "ens1f0np0") == ["ens1f0np0"]
    own = stanza(found["ens1f0np0"])
    assert (own.addresses, own.mtu_bytes) == (("198.51.100.2/25",), 9000)
    assert own.rules == ("priority 1001 from 198.51.100.2 table 101",)
    assert own.routes == ("198.51.100.0/25 table 101", "198.51.100.0/24 via 198.51.100.126 table 101")
    assert stanza(found["rail1"]).addresses == ("198.51.100.130/25",)


@FIELD
def test_field_rule_route_and_keyfile() -> None:
    texts, priorities = parse.rules(sample("ip_rule_json-1"))
    assert texts == ("priority 1001 from 198.51.100.1 table 101",)
    assert priorities == (0, 1001, 32766, 32767)
    assert parse.route_get(sample("ip_route_get_json-1")) == Proof(None, "eth0")
    own = networkmanager.stanza(sample("nmconnection-1"), False)
    assert (own.addresses, own.mtu_bytes) == (("198.51.100.2/31",), 9000)
    assert own.rules == ("priority 1001 from 198.51.100.2 table 101",)
    assert own.routes == ("198.51.100.0/24 via 198.51.100.3 table 101",)
