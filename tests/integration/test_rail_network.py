# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role rail_network on a host of each owner: networkd, netplan, NetworkManager; read by tools that are not ours."""
from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab_plugin import Lab, Labs, Play, run_lab

# Minutes: `make full` runs these; `make test` has the molecule scenario of the role.
pytestmark = pytest.mark.slow

MODULE = "aidc.gpu_cluster.rail_network"
OWNERS = {"deb13": "networkd", "ubu": "netplan", "rhel": "networkmanager"}
HOSTS = sorted(OWNERS)
RAIL0, RAIL1 = "enp65s0f0np0", "enp193s0f0np0"
FLEET = """\
management: 10.77.0.0/24
leaves: {leaf2: 10.22.0.0/16}
hosts:
  - {name: deb13, class: l40s, leaf: leaf2}
  - {name: ubu, class: l40s, leaf: leaf2, persona: ubuntu}
  - {name: rhel, class: l40s, leaf: leaf2, persona: rhel-nm}
"""
NUMBER = {"deb13": 1, "ubu": 2, "rhel": 3}
PENDING = ["write", "/run/aidc/rail-network.pending"]
SYSCTL = "/etc/sysctl.d/90-aidc-rails.conf"
FILES = {
    "deb13": f"/etc/systemd/network/20-{RAIL0}.network.d/60-aidc-rail.conf", "ubu": "/etc/netplan/90-aidc-rails.yaml",
    "rhel": "/etc/NetworkManager/system-connections/aidc-rail0.nmconnection",
}


def right(host: str, netdev: str, what: str) -> list[str]:
    """How each owner is told to put a running port right."""
    if (host, what) == ("rhel", "down"):
        return ["nmcli", "--wait", "30", "connection", "up", "id", "aidc-rail0"]
    return ["nmcli", "device", "reapply", netdev] if host == "rhel" else ["networkctl", "reconfigure", netdev]


@pytest.fixture(scope="module")
def fleet(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    file = tmp_path_factory.mktemp("rail") / "fleet.yml"
    file.write_text(FLEET, encoding="utf-8")
    lab = labs("rail", file)
    variables = lab.inventory / "host_vars"
    variables.mkdir()
    for host in HOSTS:
        (variables / f"{host}.yml").write_text(json.dumps({"rail_network_rails": [
            # Rail 0 has a gateway, a table and a rule. The fabric has no router; none is needed to ask the kernel.
            {"rail": 0, "pci": "0000:41:00.0", "gateway": "10.22.0.254", "destinations": ["10.21.0.0/16"]},
            {"rail": 1, "pci": "0000:c1:00.0"}]}), encoding="utf-8")
    return lab


@pytest.fixture(scope="module")
def playbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("play") / "rails.yml"
    path.write_text("- hosts: all\n  gather_facts: false\n  roles: [aidc.gpu_cluster.rail_network]\n", encoding="utf-8")
    return path


def commands(play: Play) -> dict[str, list[list[str]]]:
    return {host: result["commands"] for host, result in play.results(MODULE).items()}


def run(fleet: Lab, playbook: Path, *argv: str) -> Play:
    play = fleet.play(str(playbook), *argv)
    assert play.code == 0, play.text[-4000:]
    assert play.hosts() == HOSTS
    return play


@pytest.fixture(scope="module")
def configured(fleet: Lab, playbook: Path) -> Lab:
    """The first run; check mode before it says the same."""
    predicted = run(fleet, playbook, "--check", "--diff").results(MODULE)
    real = run(fleet, playbook, "--diff").results(MODULE)
    for host in HOSTS:
        for key in ("changed", "before", "after", "commands", "diff"):
            assert predicted[host][key] == real[host][key], (host, key)
        assert real[host]["changed"] is True
        assert {entry["owner"] for entry in real[host]["after"]} == {OWNERS[host]}
    return fleet


def links(fleet: Lab, host: str) -> dict[str, dict[str, Any]]:
    return {link["ifname"]: link for link in json.loads(fleet.inside(host, "ip", "-j", "-4", "addr").stdout)}


def check(fleet: Lab, host: str) -> None:
    """All that was asked for, as iproute2 and procfs see it."""
    found = links(fleet, host)
    for rail, netdev in enumerate((RAIL0, RAIL1)):
        own = [f"{entry['local']}/{entry['prefixlen']}" for entry in found[netdev]["addr_info"]]
        assert own == [f"10.22.{rail}.{NUMBER[host]}/24"], (host, netdev)
        assert (found[netdev]["mtu"], "UP" in found[netdev]["flags"]) == (4200, True), (host, netdev)
        for key, value in (("arp_ignore", 1), ("arp_announce", 2), ("rp_filter", 2)):
            text = fleet.inside(host, "cat", f"/proc/sys/net/ipv4/conf/{netdev}/{key}").stdout
            assert text == f"{value}\n", (host, netdev, key)
    assert f"from 10.22.0.{NUMBER[host]} lookup 101" in fleet.inside(host, "ip", "rule").stdout
    asked = ["ip", "-j", "route", "get", "10.21.0.1", "from", f"10.22.0.{NUMBER[host]}", "oif", RAIL0]
    way, = json.loads(fleet.inside(host, *asked).stdout)
    assert (way["gateway"], way["dev"]) == ("10.22.0.254", RAIL0)
    # The management port is as it was.
    assert found["eth0"]["mtu"] == 1500
    assert found["eth0"]["addr_info"][0]["local"] == f"10.77.0.{NUMBER[host]}"


def test_converges_and_a_second_run_changes_nothing(configured: Lab, playbook: Path) -> None:
    for host in HOSTS:
        check(configured, host)
    again = run(configured, playbook)
    assert again.changed() == {}
    assert commands(again) == {host: [] for host in HOSTS}


RUNNING = {
    "address": ("ip addr flush dev {rail} scope global", True),
    "mtu": ("ip link set {rail} mtu 1500", True),
    "down": ("ip link set {rail} down", True),
    "rule": ("ip rule del priority 1001", True),
    "sysctl": ("sysctl -qw net.ipv4.conf.{rail}.rp_filter=0", False),
}


@pytest.mark.parametrize("what", RUNNING)
def test_a_running_value_that_was_changed_is_put_back_alone(configured: Lab, playbook: Path, what: str) -> None:
    text, by_owner = RUNNING[what]
    for host in HOSTS:
        configured.inside(host, "sh", "-c", text.format(rail=RAIL0))
    play = run(configured, playbook)
    for host in HOSTS:
        wanted = right(host, RAIL0, what) if by_owner else ["set", f"/proc/sys/net/ipv4/conf/{RAIL0}/rp_filter", "2"]
        assert commands(play)[host] == [wanted], host
        check(configured, host)


def test_a_saved_value_that_was_changed_is_put_back_alone(configured: Lab, playbook: Path) -> None:
    for host in HOSTS:
        configured.inside(host, "sed", "-i", "s/4200/1500/", FILES[host])
    play = run(configured, playbook)
    for host in HOSTS:
        done = commands(play)[host]
        assert done[:2] == [PENDING, ["write", FILES[host]]], host
        assert [command for command in done if command[0] == "write"] == done[:2], host
        assert not any(command[0] == "set" for command in done), host
        check(configured, host)
    for host in HOSTS:
        configured.inside(host, "sed", "-i", f"/{RAIL1}.rp_filter/d", SYSCTL)
    play = run(configured, playbook)
    assert commands(play) == {host: [["write", SYSCTL]] for host in HOSTS}


@pytest.fixture
def without_carrier(configured: Lab) -> Iterator[Lab]:
    """NetworkManager drops an address after 8 s and not after 3 (host-setup.md 1.5)."""
    netns = configured.instance.fabric
    ports = [["ip", "-n", netns, "link", "set", f"{host}-r{rail}"] for host in HOSTS for rail in (0, 1)]
    for port in ports:
        subprocess.run([*port, "down"], check=True)
    time.sleep(9)
    yield configured
    for port in ports:
        subprocess.run([*port, "up"], check=True)


def test_a_loss_of_the_carrier_costs_nothing(without_carrier: Lab, playbook: Path) -> None:
    for host in HOSTS:
        assert "NO-CARRIER" in links(without_carrier, host)[RAIL0]["flags"]
        check(without_carrier, host)
    play = run(without_carrier, playbook)
    assert commands(play) == {host: [] for host in HOSTS}
    assert play.results(MODULE)["ubu"]["rails"][0]["carrier"] is False


def test_all_is_back_after_a_reboot(configured: Lab, playbook: Path) -> None:
    for host in HOSTS:
        run_lab("reboot", host, name=configured.instance.name)
        check(configured, host)
    assert commands(run(configured, playbook)) == {host: [] for host in HOSTS}


@pytest.mark.parametrize(("host", "tool"), [("ubu", "/usr/sbin/netplan"), ("rhel", "/usr/bin/nmcli")])
def test_files_that_the_owner_refuses_are_put_back(configured: Lab, playbook: Path, host: str, tool: str) -> None:
    """The tool answers questions and refuses to take files over."""
    refusal = 'case "$*" in generate|"connection load"*) echo broken >&2; exit 1;; esac'
    script = f'#!/bin/sh\n{refusal}\nexec {tool}.real "$@"\n'
    before = configured.inside(host, "cat", FILES[host]).stdout
    configured.inside(host, "sh", "-c", f"mv {tool} {tool}.real && cat > {tool} <<'END'\n{script}END\nchmod 755 {tool}")
    try:
        done = configured.play(str(playbook), "--limit", host, "-e", '{"mlx5_port_mtu_bytes": 9000}')
    finally:
        configured.inside(host, "mv", f"{tool}.real", tool)
    assert done.code != 0
    message = done.results(MODULE)[host]["msg"]
    assert "broken" in message and "put back" in message and "Nothing was changed." in message
    assert configured.inside(host, "cat", FILES[host]).stdout == before
    assert commands(run(configured, playbook)) == {name: [] for name in HOSTS}


def test_a_foreign_address_is_reported_and_stays(configured: Lab, playbook: Path) -> None:
    for host in HOSTS:
        configured.inside(host, "ip", "addr", "add", "192.0.2.99/32", "dev", RAIL1)
    play = run(configured, playbook)
    for host in HOSTS:
        assert play.results(MODULE)[host]["rails"][1]["foreign_addresses"] == ["192.0.2.99/32"]
        assert commands(play)[host] == []
    for host in HOSTS:
        configured.inside(host, "ip", "link", "set", RAIL1, "mtu", "1500")
    done = configured.play(str(playbook))
    for host in HOSTS:
        assert "192.0.2.99/32, which no file" in done.results(MODULE)[host]["msg"]
        configured.inside(host, "ip", "addr", "del", "192.0.2.99/32", "dev", RAIL1)
    run(configured, playbook)


def test_ports_that_nobody_manages(configured: Lab, playbook: Path) -> None:
    """Without any file for the rails: refused, then taken over by the manager that was named."""
    script = {
        "deb13": f"rm -r /etc/systemd/network/20-{RAIL0}.network* /etc/systemd/network/20-{RAIL1}.network*",
        "ubu": "rm /etc/netplan/90-*; sed -i '/enp/,$d' /etc/netplan/50-cloud-init.yaml",
    }
    for host, text in script.items():
        configured.inside(host, "sh", "-c", text)
        run_lab("reboot", host, name=configured.instance.name)
    limit = ("--limit", "deb13,ubu")
    refused = configured.play(str(playbook), *limit)
    for host in script:
        assert f"owner of {RAIL0}: got nobody" in refused.results(MODULE)[host]["msg"]
    for host, owner in (("deb13", "networkd"), ("ubu", "netplan")):
        one = ("--limit", host, "-e", f"rail_network_owner={owner}")
        assert configured.play(str(playbook), *one).code == 0
        check(configured, host)
        assert commands(configured.play(str(playbook), *one)) == {host: []}
        run_lab("reboot", host, name=configured.instance.name)
        check(configured, host)
    assert commands(configured.play(str(playbook), *limit)) == {"deb13": [], "ubu": []}
