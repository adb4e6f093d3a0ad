# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong variables for fabric.yml: each gets its message, and the host is as it was.

Broken tools: test_site, test_faults.
"""
from __future__ import annotations

import json
from typing import Any

import pytest

from tests import snapshot
from tests.lab_plugin import Lab, Labs

# Minutes; each message has a unit test too.
pytestmark = pytest.mark.slow

HOST = "one"
# lab/hardware/shapes/l40s.yml
FIRST, SECOND = "0000:41:00.0", "0000:c1:00.0"


def rails(*pcis: str, **more: Any) -> list[dict[str, Any]]:
    return [{"rail": number, "pci": pci, **more} for number, pci in enumerate(pcis)]


CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "firmware parameter that no card knows": (
        {"mlx5_nvconfig_parameters": {"NO_SUCH_PARAMETER": 1}}, ("NO_SUCH_PARAMETER", FIRST)),
    # The lab's netdevs take 65535; the device's own maximum has a unit test.
    "MTU that no device has": ({"mlx5_port_mtu_bytes": 65536}, ("got 65536, wanted 352 to 65535 bytes",)),
    "MTU too small for the RDMA MTU": (
        {"mlx5_port_mtu_bytes": 4191}, ("got 4191, which gives RDMA MTU 2048", "4192 or somewhat more")),
    "two MTUs": (
        {"mlx5_port_mtu_bytes": 4200, "rail_network_mtu_bytes": 9000},
        ("got 9000, while mlx5_port_mtu_bytes is 4200",)),
    "DSCP 64": ({"roce_qos_dscp": 64}, ("64", "0 to 63")),
    "CNP on the lossless priority": (
        {"roce_qos_cnp": {"dscp": 48, "priority": 3}}, ("cnp.priority of", "got 3, the priority of RoCE data")),
    "two rails in one subnet": (
        {"rail_network_subnets": ["198.51.100.0/24", "198.51.100.0/24"]}, ("198.51.100.0/24", HOST)),
    "PCI address that is not there": (
        {"mlx5_port_rails": rails(FIRST, "0000:99:00.0"), "rail_network_rails": rails(FIRST, "0000:99:00.0")},
        ("0000:99:00.0", "no such PCI function")),
    "PCI address as YAML reads it": (
        {"mlx5_port_rails": rails(FIRST, "C1:00.0")}, ("mlx5_port_rails[1].pci: got 'C1:00.0'",)),
    "ring that the device does not have": ({"mlx5_port_rx_ring_entries": 16384}, ("16384", "8192")),
}


@pytest.fixture(scope="module")
def port(labs: Labs) -> Lab:
    lab = labs("bad", "tests/integration/fleets/port.yml")
    for playbook in ("playbooks/packages.yml", "playbooks/fabric.yml"):
        done = lab.play(playbook)
        assert done.code == 0, done.text[-4000:]
    return lab


@pytest.mark.parametrize("case", CASES)
def test_wrong_variable(port: Lab, case: str) -> None:
    variables, texts = CASES[case]
    before = port.snapshot(HOST)
    play = port.play("playbooks/fabric.yml", "-e", json.dumps(variables))
    assert play.code != 0
    assert "Traceback" not in play.text
    results = [result for task in play.tasks for result in task["hosts"].values()]
    failed = [str(result.get("msg")) for result in results if result.get("failed")]
    assert len(failed) == 1
    for text in texts:
        assert text in failed[0]
    assert play.changed() == {}
    assert snapshot.difference(before, port.snapshot(HOST)) == []
