# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from tests.faults.standin_ip import made, shown


@pytest.mark.parametrize(("text", "name", "kind", "link", "real"), [
    ("link add site0 type bond mode active-backup", "site0", "bond", None, "link add site0 type bridge"),
    ("link add link enp1 name site.100 mtu 1500 type vlan id 100", "site.100", "vlan", "enp1",
     "link add site.100 mtu 1500 type bridge"),
])
def test_what_is_made(text: str, name: str, kind: str, link: str | None, real: str) -> None:
    assert made(text.split()) == (name, {"kind": kind, "link": link}, real.split())


@pytest.mark.parametrize("text", ["link add site0 type bridge", "link set site0 up", "addr show", "link add d0"])
def test_what_is_left_to_the_real_program(text: str) -> None:
    assert made(text.split()) is None


def test_what_is_shown() -> None:
    known: dict[str, dict[str, Any]] = {"bond0": {"kind": "bond", "link": None},
                                        "enp1.5": {"kind": "vlan", "link": "enp1"}}
    bridge: dict[str, Any] = {"linkinfo": {"info_kind": "bridge", "info_data": {"x": 1}}}
    assert shown({"ifname": "bond0", **bridge}, known)["linkinfo"] == {"info_kind": "bond"}
    assert shown({"ifname": "enp1.5", **bridge}, known) == {
        "ifname": "enp1.5", "link": "enp1", "linkinfo": {"info_kind": "vlan"}}
    member = {"ifname": "enp1", "master": "bond0", "linkinfo": {"info_kind": "veth", "info_slave_kind": "bridge"}}
    assert shown(member, known)["linkinfo"] == {"info_kind": "veth", "info_slave_kind": "bond"}
    assert shown({"ifname": "eth0"}, known) == {"ifname": "eth0"}
