# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mlx5_info with `fabric` on a node of each network manager, before and after rail_network, and with tools missing."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fabric import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.info import NodeClass

from tests.unit.plugins.fake import ok
from tests.unit.plugins.module_utils._rail.case import OWNERS, WANTS, run
from tests.unit.plugins.rail_node import RailNode, rail_node

NAMES = {"networkd": "systemd-networkd", "netplan": "systemd-networkd", "networkmanager": "NetworkManager"}


@pytest.fixture(params=OWNERS)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> RailNode:
    return rail_node(tmp_path, request.param)


def answer(node: RailNode, texts: dict[tuple[str, ...], str] | None = None) -> None:
    """Tools that only this reader asks; one without a text is not installed. The node has IPv4 rules alone."""
    before = node.default

    def default(call: tuple[str, ...]) -> Result:
        text = next((text for start, text in (texts or {}).items() if call[:len(start)] == start), None)
        if text is not None:
            return ok(text)
        if call[:3] == ("ip", "-j", "-6"):
            return ok("[]\n")
        own = call[0] == "ethtool" or call[-1] in ("lldpad.service", "aidc-fabric.service")
        return Result(call, "missing") if own else before(call)

    node.default = default  # type: ignore[method-assign]


def fabric(node: RailNode) -> dict[str, t.Any]:
    if "default" not in vars(node):
        answer(node)
    pcis = [rail.pci for rail in node.rails]
    found: dict[str, t.Any] = io.read(node.machine(), pcis, NodeClass())["fabric"]
    return found


def test_a_port_as_the_manager_had_it_loses_its_address_with_the_carrier(node: RailNode) -> None:
    found = fabric(node)["netdevs"][node.rails[0].netdev]
    assert found["owners"] == [NAMES[node.owner]]
    assert (found["saved"] or {"ignore_carrier": False})["ignore_carrier"] is False
    assert found["sysctls"] == {"arp_ignore": 0, "arp_announce": 0, "rp_filter": 0}


def test_after_rail_network_it_does_not(node: RailNode) -> None:
    run(node)
    for rail, want in zip(node.rails, WANTS) if node.owner == "netplan" else ():
        # The stand-in of netplan makes no files; the real one writes these lines for mtu and ignore-carrier.
        text = f"[Link]\nMTUBytes={want.mtu_bytes}\n\n[Network]\nAddress={want.address}\nConfigureWithoutCarrier=true\n"
        node.put(str(rail.network_file), f"[Match]\nName={rail.netdev}\n\n{text}")
    found = fabric(node)
    for rail, want in zip(node.rails, WANTS):
        port = found["netdevs"][rail.netdev]
        assert (port["owners"], port["volatile"]) == ([NAMES[node.owner]], None)
        assert port["sysctls"] == {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}
        assert port["saved"] == {"mtu_bytes": want.mtu_bytes, "addresses": [want.address], "ignore_carrier": True}
        assert port["addresses"] == [want.address]
    wanted = {text for want in WANTS for text in (*want.rules, *want.routes)}
    assert wanted <= {*found["rules"], *(text for texts in found["routes"].values() for text in texts)}
    assert found["ports"][node.rails[0].pci]["dpu_mode"] is None


def test_tools_that_are_missing_leave_values_unknown(node: RailNode) -> None:
    found = fabric(node)
    assert found["ports"][node.rails[0].pci]["global_pause"] is None
    assert (found["lldpad"], found["boot_unit"]) == (None, None)
    assert found["intent"] == {"present": False, "schema_version": None, "problem": None}


def test_what_the_files_say(tmp_path: Path) -> None:
    node = rail_node(tmp_path, "networkd")
    rail = node.rails[0]
    node.put("/etc/aidc/intent.json", '{"schema_version": 3}\n')
    node.put(f"/sys/class/infiniband/{rail.rdma}/tc/1/traffic_class", "Global tclass=106\n")
    answers = {("ethtool", "-a"): "Pause parameters\nAutonegotiate: off\nRX: on\nTX: off\n",
               ("systemctl", "is-active", "lldpad.service"): "active\n",
               ("systemctl", "is-enabled", "aidc-fabric.service"): "enabled\n"}
    answer(node, answers)
    found = fabric(node)
    port = found["ports"][rail.pci]
    assert (port["global_pause"], port["traffic_class"]) == ("rx on", 106)
    assert (found["lldpad"], found["boot_unit"], found["intent"]["schema_version"]) == (True, "enabled", 3)
