# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._rail.model import PENDING_FILE, Want

from tests.unit.plugins.fake import ok
from tests.unit.plugins.holders import slurm_step, verbs
from tests.unit.plugins.module_utils._rail.case import REQUEST, WANTS, mutations, run
from tests.unit.plugins.rail_node import NETPLAN, PROFILES, RailNode, rail_node

SYSCTL_FILE = "/etc/sysctl.d/90-aidc-rails.conf"
SAVED = {
    "networkd": "/etc/systemd/network/20-rail1.network.d/60-aidc-rail.conf", "netplan": NETPLAN,
    "networkmanager": f"{PROFILES}/aidc-rail1.nmconnection",
}
RIGHT = {
    "networkd": [["networkctl", "reconfigure", "rail1"]], "netplan": [["networkctl", "reconfigure", "rail1"]],
    "networkmanager": [["nmcli", "device", "reapply", "rail1"]],
}


def test_converges_and_then_changes_nothing(node: RailNode) -> None:
    first = run(node)
    assert first["changed"]
    rail0, rail1 = first["after"]
    assert rail0["owner"] == node.owner
    assert rail0["running"] == {
        "addresses": ["198.51.100.1/24"], "mtu_bytes": 4200, "up": True,
        "rules": ["priority 1001 from 198.51.100.1 table 101"],
        "routes": ["198.51.0.0/16 via 198.51.100.254 table 101", "198.51.100.0/24 table 101"],
        "arp_ignore": 1, "arp_announce": 2, "rp_filter": 2,
    }
    assert {**rail0["running"], "ignore_carrier": True} == {**rail0["saved"], "up": True}
    assert (rail1["saved"]["mtu_bytes"], rail1["running"]["rules"]) == (9000, [])
    assert first["rails"][0]["route_gateway"] == "198.51.100.254"
    assert node.live["rail1"].mtu == 9000
    assert not (node.root / PENDING_FILE[1:]).exists()
    node.calls.clear()
    second = run(node)
    assert (second["changed"], second["commands"], mutations(node)) == (False, [], [])
    assert second["before"] == second["after"]
    # Budget: 6 and 3 for each device. The unit test is not under SSH, which costs a call.
    assert len(node.calls) <= 6 + 3 * len(WANTS) + 1


def test_modes_of_the_files(node: RailNode) -> None:
    run(node)
    for path in node.files():
        mode = (node.root / path).stat().st_mode & 0o777
        if "aidc" in path:
            assert mode == (0o600 if path.endswith((".yaml", ".nmconnection")) else 0o644), path


BEHIND = {
    "address": lambda node: node.live["rail1"].addresses.clear(),
    "mtu": lambda node: setattr(node.live["rail1"], "mtu", 1500),
    "down": lambda node: setattr(node.live["rail1"], "up", False),
    "sysctl": lambda node: node.put("/proc/sys/net/ipv4/conf/rail1/rp_filter", "0\n"),
    "sysctl file": lambda node: node.put(SYSCTL_FILE, node.get(SYSCTL_FILE).replace("rail1/rp_filter = 2", "") + "\n"),
    "file": lambda node: node.put(SAVED[node.owner], node.get(SAVED[node.owner]).replace("9000", "1500") + "\n"),
}


@pytest.mark.parametrize("what", ["fresh", *BEHIND, "killed"])
def test_check_mode_equals_the_run(node: RailNode, what: str) -> None:
    if what != "fresh":
        run(node)
    if what in BEHIND:
        BEHIND[what](node)
    if what == "killed":
        node.put(PENDING_FILE, "")
    before = node.files()
    node.calls.clear()
    predicted = run(node, check_mode=True)
    assert node.files() == before
    assert mutations(node) == []
    real = run(node)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key
    assert run(node)["changed"] is False


@pytest.mark.parametrize("what", BEHIND)
def test_one_value_changed_behind_our_back_is_put_back_alone(node: RailNode, what: str) -> None:
    run(node)
    BEHIND[what](node)
    commands = run(node)["commands"]
    if what == "sysctl":
        assert commands == [["set", "/proc/sys/net/ipv4/conf/rail1/rp_filter", "2"]]
    elif what == "sysctl file":
        assert commands == [["write", SYSCTL_FILE]]
    elif what == "file":
        assert [command for command in commands if command[0] == "write"] == [
            ["write", PENDING_FILE], ["write", SAVED[node.owner]]]
        assert not any("rail0" in word for command in commands for word in command)
    elif what == "down" and node.owner == "networkmanager":
        assert commands == [["nmcli", "--wait", "30", "connection", "up", "id", "aidc-rail1"]]
    else:
        assert commands == RIGHT[node.owner]


def test_a_rule_that_somebody_removed(node: RailNode) -> None:
    run(node)
    node.live["rail0"].rules.clear()
    result = run(node)
    assert result["commands"] == [[word.replace("rail1", "rail0") for word in RIGHT[node.owner][0]]]


def test_another_address_takes_the_place_of_our_old_one(node: RailNode) -> None:
    run(node)
    request = dataclasses.replace(REQUEST, rails=(WANTS[0], dataclasses.replace(WANTS[1], address="203.0.113.7/24")))
    predicted = run(node, request, True)
    result = run(node, request)
    assert predicted["after"] == result["after"]
    assert node.live["rail1"].addresses == ["203.0.113.7/24"]
    assert run(node, request)["changed"] is False


def test_a_foreign_address_is_reported_and_never_removed(node: RailNode) -> None:
    run(node)
    node.live["rail1"].addresses.append("192.0.2.99/24")
    quiet = run(node)
    assert (quiet["changed"], quiet["rails"][1]["foreign_addresses"]) == (False, ["192.0.2.99/24"])
    node.live["rail1"].mtu = 1500
    with pytest.raises(AidcError, match=r"192\.0\.2\.99/24, which no file of .* has.*Nothing was changed"):
        run(node)
    assert "192.0.2.99/24" in node.live["rail1"].addresses


def test_rails_in_use_are_left_alone(node: RailNode) -> None:
    node.rdma = [{"ifname": "mlx5_0", "type": "RC", "pid": 77, "comm": "train"},
                 {"ifname": "mlx5_1", "type": "GSI", "comm": "ib_core"}]
    before = node.files()
    for check_mode in (True, False):
        result = run(node, check_mode=check_mode)
        assert (result["changed"], result["commands"]) == (False, [])
        (entry,) = result["deferred"]
        assert {key: entry[key] for key in ("rail", "pci", "netdev", "holders")} == {
            "rail": 0, "pci": "0000:03:00.0", "netdev": "rail0", "holders": ["pid 77 train has connections on mlx5_0"]}
        assert any(step[0] == "write" for step in entry["steps"])
        assert result["before"] == result["after"]
    assert node.files() == before
    never = dataclasses.replace(REQUEST, disruption_policy="never")
    assert len(run(node, never)["deferred"]) == 2
    assert run(node, dataclasses.replace(REQUEST, disruption_policy="force"))["changed"]


def test_users_that_cannot_be_known(node: RailNode) -> None:
    node.override[("rdma",)] = lambda call: Result((), "missing")
    verbs(node.root, ["mlx5_0", "mlx5_1"])
    holder = slurm_step(node.root, 1234, "all_reduce_perf", "/dev/infiniband/uverbs1")
    result = run(node)
    assert (result["changed"], result["rdma_users_known"]) == (False, False)
    step = "Slurm job 4242 step 0 (pid 1234 all_reduce_perf)"
    assert [entry["holders"] for entry in result["deferred"]] == [
        [f"{step} runs on this node"], [f"{step} holds mlx5_1"]]
    shutil.rmtree(holder)
    result = run(node)
    assert (result["changed"], result["rdma_users_known"]) == (True, False)


def test_nobody_owns_the_port(tmp_path: Path) -> None:
    node = rail_node(tmp_path, "networkd")
    for rail in node.rails:
        (tmp_path / f"etc/systemd/network/20-{rail.netdev}.network").unlink()
        node.admin_state[rail.netdev] = "unmanaged"
        node.live[rail.netdev].up = False
    with pytest.raises(AidcError, match=r"owner of rail0: got nobody.*option owner"):
        run(node)
    result = run(node, dataclasses.replace(REQUEST, owner="networkd"))
    assert ["write", "/etc/systemd/network/05-aidc-rail0.network"] in result["commands"]
    assert node.get("/etc/systemd/network/05-aidc-rail0.network").splitlines()[1:3] == ["[Match]", "Name=rail0"]
    assert node.live["rail0"].up
    # It is networkd's now.
    assert run(node)["changed"] is False
    with pytest.raises(AidcError, match="owner of rail0: got networkd, wanted netplan"):
        run(node, dataclasses.replace(REQUEST, owner="netplan"))


def test_two_owners_of_one_port(tmp_path: Path) -> None:
    node = rail_node(tmp_path, "networkd")
    node.override[("systemctl", "is-active", "NetworkManager.service")] = lambda call: ok("active\n")
    devices = ("nmcli", "-t", "-f", "DEVICE,TYPE,STATE,CONNECTION")
    node.override[devices] = lambda call: ok("rail1:ethernet:connected:x\n")
    node.override[("nmcli", "-t", "-f", "NAME,UUID,TYPE,DEVICE,FILENAME")] = lambda call: ok()
    with pytest.raises(AidcError, match="owner of rail1: got systemd-networkd and NetworkManager, wanted one manager"):
        run(node)


def test_the_old_drop_in_of_mlx5_port(tmp_path: Path) -> None:
    node = rail_node(tmp_path, "networkd")
    node.put("/etc/systemd/network/20-rail0.network.d/50-aidc-mtu.conf", "[Link]\nMTUBytes=1500\n")
    result = run(node)
    assert result["after"][0]["saved"]["mtu_bytes"] == 4200
    assert run(node)["changed"] is False


def test_a_drop_in_that_overrules_ours(tmp_path: Path) -> None:
    node = rail_node(tmp_path, "networkd")
    node.put("/etc/systemd/network/20-rail0.network.d/90-z.conf", "[Link]\nMTUBytes=1500\n")
    with pytest.raises(AidcError, match=r"saved MTU of rail0: got 1500 in a drop-in.*Nothing was changed"):
        run(node)


def test_what_a_port_must_not_be(node: RailNode) -> None:
    node.default_device = "rail0"
    (node.root / "sys/bus/pci/devices/0002:03:00.0/physfn").mkdir()
    request = dataclasses.replace(REQUEST, rails=(*WANTS, Want(2, "0000:99:00.0", "192.0.2.1/24", 4200)))
    with pytest.raises(AidcError) as caught:
        run(node, request)
    message = str(caught.value)
    assert "0000:03:00.0 (rail0): got a port that carries the default route" in message
    assert "0002:03:00.0: got a virtual function, wanted a physical port" in message
    assert "0000:99:00.0: got no such PCI function" in message


def test_all_has_a_larger_value_than_the_rails_want(node: RailNode) -> None:
    node.put("/proc/sys/net/ipv4/conf/all/arp_ignore", "2\n")
    with pytest.raises(AidcError, match=r"net.ipv4.conf.all.arp_ignore: got 2, wanted at most 1"):
        run(node)
    node.put("/proc/sys/net/ipv4/conf/all/arp_ignore", "1\n")
    result = run(node)
    assert not any(command[0] == "set" and "arp_ignore" in command[1] for command in result["commands"])
    assert result["after"][0]["running"]["arp_ignore"] == 1
