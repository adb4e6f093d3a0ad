# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._net.model import Link, NetState
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._net.plan import hint, management, refusals, uses


def state(*links: Link, **fields: object) -> NetState:
    return NetState({link.name: link for link in links}, **fields)  # type: ignore[arg-type]


def test_a_free_port_has_no_use() -> None:
    assert uses(state(Link("rail0"), Link("eth0"), default_devices=("eth0",))) == {"eth0": "carries the default route"}


def test_members() -> None:
    found = uses(state(Link("a", master="br0", member_kind="bridge"), Link("b", master="bond0", member_kind="bond"),
                       Link("c", master="ovs-system"), Link("d", master="vrf1", member_kind="vrf")))
    assert found == {"a": "is a member of the bridge br0", "b": "is a member of the bond bond0",
                     "c": "is a port of Open vSwitch"}


def test_a_use_goes_down_through_vlan_and_bond() -> None:
    found = uses(state(Link("bond0.5", kind="vlan", lower="bond0"), Link("bond0"),
                       Link("a", master="bond0", member_kind="bond"), Link("rail0"), default_devices=("bond0.5",)))
    assert found["a"] == "is a member of the bond bond0; carries the default route"
    assert "rail0" not in found


def test_ssh_and_storage_each_once() -> None:
    found = uses(state(Link("eth0", addresses=("192.0.2.1",)), Link("rail0", addresses=("198.51.100.1",)),
                       ssh_addresses=("192.0.2.1",), storage=(("192.0.2.50", "eth0"), ("192.0.2.50", "eth0"))))
    assert list(found) == ["eth0"]
    assert found["eth0"] == ("carries the SSH connection (192.0.2.1); "
                             "carries a network file system (server 192.0.2.50)")


def test_a_loop_of_links_ends() -> None:
    assert set(uses(state(Link("a", lower="b"), Link("b", lower="a"), default_devices=("a",)))) == {"a", "b"}


SSH, ROUTE, NFS = ("carries the SSH connection (192.0.2.1)", "carries the default route",
                   "carries a network file system (server 192.0.2.9)")


def test_the_way_to_the_host_may_be_allowed_and_nothing_else() -> None:
    assert refusals(f"{SSH}; {ROUTE}", False) == [SSH, ROUTE] and refusals(f"{SSH}; {ROUTE}", True) == []
    assert refusals(f"{SSH}; {NFS}", True) == [NFS] and refusals(None, False) == refusals("", True) == []
    assert "allow_management" in hint([SSH, ROUTE]) and "allow_management" not in hint([SSH, NFS])
    assert management({"a": SSH, "b": NFS, "c": f"{NFS}; {ROUTE}", "d": "is a member of the bond bond0"}) == {"a", "c"}
