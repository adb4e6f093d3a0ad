# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each group of settings of a port, changed behind our back, comes back alone; GIDs whose index moved are told."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab_plugin import Lab, Labs, Play

# Minutes: `make full` runs these; `make test` has the molecule scenario of the role.
pytestmark = pytest.mark.slow

NAME, HOST = "port", "one"
# lab/hardware/shapes/l40s.yml
RAIL, PCI = "enp193s0f0np0", "0000:c1:00.0"
OTHER = "enp65s0f0np0"
DROPIN = f"/etc/systemd/network/20-{RAIL}.network.d/50-aidc-mtu.conf"
PENDING = "/run/aidc/networkd-reload.pending"
WANTED = {"mlx5_port_admin_state": "up", "mlx5_port_rx_ring_entries": 8192, "mlx5_port_tx_ring_entries": 4096,
          "mlx5_port_channels": 32, "mlx5_port_global_pause": "disabled", "mlx5_port_max_read_request_bytes": 4096,
          # The MTU is mlx5_port's own here; there are no addresses before the part about GIDs.
          "rail_network_mode": "off", "roce_gid_mode": "off"}
MODULE = "aidc.gpu_cluster.mlx5_port"

# Group -> (what somebody does as root, the steps that put it back, a test of the result without our tools).
GROUPS: dict[str, tuple[str, list[str], str]] = {
    "mtu": (f"ip link set {RAIL} mtu 1500", [f"ip link set dev {RAIL} mtu 4200"],
            f"test $(cat /sys/class/net/{RAIL}/mtu) = 4200"),
    "saved mtu": (f"rm {DROPIN}", [f"write {PENDING}", f"write {DROPIN}", "networkctl reload", f"remove {PENDING}"],
                  f"grep -qx MTUBytes=4200 {DROPIN}"),
    "rings": (f"ethtool -G {RAIL} rx 512 tx 512", [f"ethtool -G {RAIL} rx 8192 tx 4096"],
              f"ethtool --json -g {RAIL} | tr -d ' \\n' | grep -q '\"rx\":8192,\"tx\":4096'"),
    "one ring": (f"ethtool -G {RAIL} tx 512", [f"ethtool -G {RAIL} tx 4096"],
                 f"ethtool --json -g {RAIL} | tr -d ' \\n' | grep -q '\"rx\":8192,\"tx\":4096'"),
    "channels": (f"ethtool -L {RAIL} combined 7", [f"ethtool -L {RAIL} combined 32"],
                 f"ethtool -l {RAIL} | tail -1 | grep -qw 32"),
    "pause": (f"ethtool -A {RAIL} rx on tx on", [f"ethtool -A {RAIL} rx off tx off"],
              f"test $(ethtool -a {RAIL} | grep -c off) = 3"),
    "read request": (f"setpci -s {PCI} CAP_EXP+08.w=2000:f000", [f"setpci -s {PCI} CAP_EXP+08.w=5000:f000"],
                     f"test $(setpci -s {PCI} CAP_EXP+08.w) = 5830"),
    "admin state": (f"ip link set {RAIL} down", [f"ip link set dev {RAIL} up"],
                    f"ip link show {RAIL} up | grep -q {RAIL}"),
}


def fabric(lab: Lab, *argv: str, **more: Any) -> Play:
    return lab.play("playbooks/fabric.yml", "-e", json.dumps({**WANTED, **more}), *argv)


def commands(play: Play) -> list[str]:
    assert play.code == 0, play.text[-4000:]
    return [" ".join(argv) for argv in play.results(MODULE)[HOST]["commands"]]


@pytest.fixture(scope="module")
def port(labs: Labs) -> Lab:
    lab = labs(NAME, "tests/integration/fleets/port.yml")
    done = lab.play("playbooks/packages.yml")
    assert done.code == 0, done.text[-4000:]
    return lab


def test_first_run_converges_and_the_second_changes_nothing(port: Lab) -> None:
    first = fabric(port)
    assert first.code == 0, first.text[-4000:]
    assert first.hosts() == [HOST]
    assert [item for item in commands(first) if item.startswith(("ethtool", "setpci"))] == [
        f"{command} {rail} {rest}" if command.startswith("ethtool") else f"setpci -s {pci} {rest}"
        for rail, pci in ((OTHER, "0000:41:00.0"), (RAIL, PCI))
        for command, rest in (("ethtool -G", "rx 8192 tx 4096"), ("ethtool -L", "combined 32"),
                              ("ethtool -A", "rx off tx off"), ("setpci", "CAP_EXP+08.w=5000:f000"))]
    again = fabric(port)
    assert (again.code, again.changed(), commands(again)) == (0, {}, [])
    for _break, _steps, test in GROUPS.values():
        port.inside(HOST, "sh", "-c", test)


@pytest.mark.parametrize("group", GROUPS)
def test_one_group_changed_behind_our_back(port: Lab, group: str) -> None:
    deed, steps, test = GROUPS[group]
    port.inside(HOST, "sh", "-c", deed)
    assert port.inside(HOST, "sh", "-c", test, check=False).returncode != 0
    predicted = fabric(port, "--check", "--diff")
    assert commands(predicted) == steps
    assert port.inside(HOST, "sh", "-c", test, check=False).returncode != 0
    real = fabric(port, "--diff")
    assert commands(real) == steps
    one, other = (play.results(MODULE)[HOST] for play in (predicted, real))
    for key in ("before", "after", "diff", "changed"):
        assert one[key] == other[key], key
    port.inside(HOST, "sh", "-c", test)
    assert fabric(port).changed() == {}


@pytest.mark.parametrize(("values", "text"), [
    ({"mlx5_port_channels": 64}, f"channels of {PCI} ({RAIL}): got 64, wanted 1 to 63, the device's limits"),
    ({"mlx5_port_rx_ring_entries": 1000}, "wanted a power of two (mlx5 would round it up to 1024)"),
    ({"mlx5_port_tx_ring_entries": 16384}, "got 16384, wanted 64 to 8192, the device's limits"),
])
def test_bad_values_change_nothing(port: Lab, values: dict[str, int], text: str) -> None:
    play = fabric(port, **values)
    assert play.code != 0
    message = play.results(MODULE)[HOST]["msg"]
    assert text in message and message.endswith("Nothing was changed.")
    assert fabric(port).changed() == {}


# -- roce_gid -------------------------------------------------------------------------------------

def gids(lab: Lab, folder: Path, **values: Any) -> Play:
    file = folder / "gids.yml"
    file.write_text(json.dumps([{
        "hosts": "all", "gather_facts": False,
        "roles": [{"role": "aidc.gpu_cluster.roce_gid", "roce_gid_wait_seconds": 1.0, **values}]}]), encoding="utf-8")
    return lab.play(str(file))


def gid(play: Play) -> dict[str, Any]:
    assert play.code == 0, play.text[-4000:]
    found: dict[str, Any] = play.results("aidc.gpu_cluster.roce_gid")[HOST]
    return found


@pytest.fixture(scope="module")
def addressed(port: Lab) -> Lab:
    """rail_network gives the addresses and takes the MTU over, with a file that is read after mlx5_port's."""
    done = port.play("playbooks/fabric.yml", "-e", json.dumps({**WANTED, "rail_network_mode": "apply"}))
    assert done.code == 0, done.text[-4000:]
    # The MTU is no more this module's.
    assert done.results(MODULE)[HOST]["commands"] == [["write", "/etc/aidc/intent.json"]]
    return port


def test_an_index_that_moved_is_told_and_is_no_error(addressed: Lab, tmp_path: Path) -> None:
    first = gid(gids(addressed, tmp_path))
    before = first["ports"][1]
    assert (before["pci"], before["netdev"], before["type"]) == (PCI, RAIL, "RoCE v2")
    links = json.loads(addressed.inside(HOST, "ip", "-j", "-4", "addr", "show", "dev", RAIL).stdout)[0]["addr_info"]
    assert [link["local"] for link in links] == [before["address"]]
    address = f"{links[0]['local']}/{links[0]['prefixlen']}"
    # Somebody else's address takes the slots, as after a change of the order of events (mlx5-roce 3.2).
    for words in (["del", address], ["add", "192.0.2.99/32"], ["add", address], ["del", "192.0.2.99/32"]):
        addressed.inside(HOST, "ip", "addr", *words, "dev", RAIL)
    play = gids(addressed, tmp_path)
    after = gid(play)
    assert after["ports"][1]["gid"] == before["gid"]
    assert after["ports"][1]["index"] != before["index"]
    assert [(entry["pci"], entry["before"]["index"], entry["now"]["index"]) for entry in after["moved"]] == [
        (PCI, before["index"], after["ports"][1]["index"])]
    assert "moved: " in play.text
    assert play.changed() == {}
    assert gid(gids(addressed, tmp_path))["moved"] == []


def test_none_and_several(addressed: Lab, tmp_path: Path) -> None:
    none = gids(addressed, tmp_path, roce_gid_subnets=["198.51.100.0/24"])
    assert none.code != 0
    message = none.results("aidc.gpu_cluster.roce_gid")[HOST]["msg"]
    assert "none within 1 s; the table has: fe80::" in message
    assert "wanted one RoCE v2 GID of an ipv4 address in 198.51.100.0/24" in message
    addressed.inside(HOST, "ip", "addr", "add", "203.0.113.5/32", "dev", RAIL)
    several = gids(addressed, tmp_path)
    addressed.inside(HOST, "ip", "addr", "del", "203.0.113.5/32", "dev", RAIL)
    assert several.code != 0
    assert f"{PCI} (mlx5_1): got 2: " in several.results("aidc.gpu_cluster.roce_gid")[HOST]["msg"]


# -- mlx5_info ------------------------------------------------------------------------------------

def test_what_is_known_of_the_host(addressed: Lab, tmp_path: Path) -> None:
    file = tmp_path / "info.yml"
    file.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "become": True, "tasks": [{
        "name": "Read", "aidc.gpu_cluster.mlx5_info": {
            "rails": [PCI], "class": {"pcie_speed_gts": 128, "pcie_width": 16}}}]}]), encoding="utf-8")
    play = addressed.play(str(file))
    assert play.code == 0, play.text[-4000:]
    found = play.results("aidc.gpu_cluster.mlx5_info")[HOST]
    assert [device["ports"][0]["role"] for device in found["devices"]] == ["unused", "rail"]
    assert [entry["kind"] for device in found["devices"] for entry in device["netdev_details"]] == ["uplink", "uplink"]
    assert (found["stack"]["backend"], found["needs_root"], found["problems"]) == ("inbox", [], [])
    assert found["devices"][1]["ports"][0]["counters"]["np_cnp_sent"] == 0
    # What roce_qos has set, by one program for both ports.
    assert [(port["qos"]["trust"], port["qos"]["pfc"]) for device in found["devices"] for port in device["ports"]] == [
        ("dscp", [3])] * 2
    # The same without root: what was not read is named, and the rest is there.
    file.write_text(file.read_text(encoding="utf-8").replace('"become": true', '"become": false'), encoding="utf-8")
    play = addressed.play(str(file))
    assert play.code == 0, play.text[-4000:]
    plain = play.results("aidc.gpu_cluster.mlx5_info")[HOST]
    assert [device["pci"] for device in plain["devices"]] == [device["pci"] for device in found["devices"]]
    assert plain["needs_root"] != []
    # The class asks for more than this lab's PCIe link has.
    assert [finding["object"] for finding in found["findings"]] == [f"PCIe link of {PCI}"]
