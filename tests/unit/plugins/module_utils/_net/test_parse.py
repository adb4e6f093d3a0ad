# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._net import parse

ADDR = """[{"ifname":"eth0","ifindex":2,"mtu":1500,"max_mtu":9978,
  "addr_info":[{"family":"inet","local":"192.0.2.1"},{"family":"inet6","local":"fe80::1"},{}]},
 {},
 {"ifname":"veth1","ifindex":3,"link":"veth2","max_mtu":0,"linkinfo":{"info_kind":"veth"}},
 {"ifname":"eth0.5","ifindex":4,"link":"eth0","linkinfo":{"info_kind":"vlan"}},
 {"ifname":"rail0","ifindex":5,"master":"bond0","linkinfo":{"info_slave_kind":"bond"}}]"""


def test_links() -> None:
    links = parse.links(ADDR)
    assert (links["eth0"].addresses, links["eth0"].max_mtu_bytes) == (("192.0.2.1", "fe80::1"), 9978)
    assert (links["veth1"].lower, links["veth1"].max_mtu_bytes) == (None, None)
    assert links["eth0.5"].lower == "eth0"
    assert (links["eth0"].mtu_bytes, links["eth0.5"].mtu_bytes) == (1500, None)
    assert (links["rail0"].master, links["rail0"].member_kind) == ("bond0", "bond")


@pytest.mark.parametrize("text", ["{}", "[1]", "garbage", '[{"ifindex":1}]', '[{"ifname":"a","linkinfo":[1]}]',
                                  '[{"ifname":"a","addr_info":[1]}]', '[{"ifname":"a","max_mtu":null}]'])
def test_no_links(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse.links(text)


def test_routes() -> None:
    assert parse.route_devices("") == ()
    assert parse.route_devices('[{"dst":"default","dev":"eth0"},{"dst":"default","dev":"eth0"}]') == ("eth0",)
    assert parse.route_devices('[{"dst":"default","nexthops":[{"dev":"a"},{"dev":"b"}]}]') == ("a", "b")


@pytest.mark.parametrize(("text", "found"), [
    ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:22", "192.0.2.1"), ("192.0.2.1%eth0:22", "192.0.2.1"),
    ("[2001:db8::1]:22", "2001:db8::1"), ("[fe80::1%eth0]:22", "fe80::1"), ("fe80::1%eth0", "fe80::1"),
    ("[::ffff:192.0.2.1]:22", "192.0.2.1"), ("2001:db8::1", "2001:db8::1"), ("server", None), ("", None),
])
def test_address(text: str, found: str | None) -> None:
    assert parse.address(text) == found


def test_ssh_connection() -> None:
    assert parse.ssh_local_address(b"A=1\0SSH_CONNECTION=192.0.2.254 45972 192.0.2.1 22\0B=2") == "192.0.2.1"
    assert parse.ssh_local_address(b"SSH_CONNECTION=short\0XSSH_CONNECTION=a b 192.0.2.1 d") is None


def test_sshd_sockets() -> None:
    text = ('0      36     192.0.2.1:22 192.0.2.254:45972 users:(("sshd-session",pid=778,fd=7))\n'
            '0      0      192.0.2.1:22 192.0.2.253:45972 users:(("sshd",pid=779,fd=7))\n'
            '0      0      198.51.100.1:40000 198.51.100.2:22 users:(("ssh",pid=900,fd=3))\n\n')
    assert parse.sshd_local_addresses(text) == ("192.0.2.1",)


def test_parent() -> None:
    assert parse.parent_pid("Name:\tsh\nPPid:\t77\n") == 77
    assert parse.parent_pid("") == 0


MOUNTS = """22 1 0:20 / / rw shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2,clientaddr=192.0.2.1,addr=192.0.2.50
31 22 0:41 / /cifs rw - cifs //server/share rw,addr=192.0.2.51
32 22 0:42 / /ceph rw - ceph 192.0.2.52:6789,[2001:db8::52]:6789:/ rw,name=admin
33 22 0:43 / /ceph2 rw - ceph user@fsid.fs=/ rw,mon_addr=192.0.2.53:3300/192.0.2.54:3300
34 22 0:44 / /lustre rw - lustre 192.0.2.55@tcp,192.0.2.56@o2ib1:192.0.2.57@tcp:/scratch rw
35 22 0:45 / /old rw - nfs
garbage line
"""


def test_storage_servers() -> None:
    assert parse.storage_servers(MOUNTS) == (
        "192.0.2.50", "192.0.2.51", "192.0.2.52", "2001:db8::52", "192.0.2.53", "192.0.2.54", "192.0.2.55",
        "192.0.2.56", "192.0.2.57")


def test_nvme() -> None:
    assert parse.nvme_server("traddr=192.0.2.60,trsvcid=4420,src_addr=192.0.2.1") == "192.0.2.60"
    assert parse.nvme_server("0000:01:00.0") is None
