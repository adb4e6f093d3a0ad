# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README's recipes for a part of the collection, on hosts that somebody configured by hand and not we."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.image import USER
from tests import snapshot
from tests.lab_plugin import ROOT, Lab, Labs, Play

# Minutes: two hosts, three recipes.
pytestmark = pytest.mark.slow

HOSTS = ["one", "two"]
RAILS = ["enp65s0f0np0", "enp193s0f0np0"]
SUBNETS = ["10.31.0.0/24", "10.31.1.0/24"]
# By hand, as an administrator would: packages, addresses, an MTU.
BY_HAND = """
set -e
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] {mirror} trixie main' > /etc/apt/sources.list
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install \
    ibverbs-utils ethtool mstflint pciutils openmpi-bin nccl-tests > /dev/null
for pair in {rails}; do
    port=${{pair%%=*}} address=${{pair#*=}}
    rm -f /etc/systemd/network/*-$port.network
    {{
        echo '# by hand'
        printf '[Match]\\nName=%s\\n[Link]\\nMTUBytes={mtu}\\n' $port
        printf '[Network]\\nAddress=%s\\nConfigureWithoutCarrier=yes\\n' $address
    }} > /etc/systemd/network/30-$port.network
done
networkctl reload
for try in 1 2 3 4 5 6 7 8 9 10; do
    ip -4 address show | grep -c ' 10.31.' | grep -qx 2 && exit 0
    sleep 0.5
done
exit 1
"""
# Its files, units and their states; the folders that these are in; and units that its own name, which are not started.
BOOT_TOOL = re.compile(
    r"/etc/aidc\b|/usr/libexec/aidc\b|aidc-fabric"
    r"|^(/etc(/systemd(/system(/multi-user\.target\.wants)?)?|/udev(/rules\.d)?)?|/usr/libexec): "
    r"|: \S+ (not-found|loaded|masked) inactive dead: not there -> there$")
# The lab's scale and network; everything else is the README's.
LAB: dict[str, Any] = {
    "aidc_lab": True, "nccl_gate_min_busbw_gbps": 0.005, "nccl_gate_min_bytes": "1M", "nccl_gate_max_bytes": "1M",
    "nccl_gate_iterations": 2, "nccl_gate_warmup_iterations": 1, "nccl_gate_network": "10.78.0.0/24",
}


def recipe(name: str) -> dict[str, Any]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block, = re.findall(rf"```yaml\n# {name}/hosts\.yml\n(.*?)```", text, re.DOTALL)
    data: dict[str, Any] = yaml.safe_load(block)
    return data


def commands(name: str) -> list[list[str]]:
    """The README's commands of a recipe, in order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [line.split()[1:] for line in re.findall(rf"^    (ansible-playbook .*-i {name}\b.*)$", text, re.MULTILINE)]


def write(lab: Lab, name: str, folder: Path) -> Lab:
    """The recipe as an inventory: its host names are the lab's, and how they are reached is added."""
    made = yaml.safe_load((lab.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]
    group = recipe(name)["l40s"]
    entries = dict(zip(HOSTS, group["hosts"].values(), strict=True))
    address = {host: made["children"]["l40s"]["hosts"][host]["ansible_host"] for host in HOSTS}
    gate = "nccl_gate_pool" in group["vars"]
    variables = {**group["vars"], **{key: value for key, value in LAB.items() if gate or key == "aidc_lab"}}
    if "rail_network_subnets" in variables:
        variables["rail_network_subnets"] = SUBNETS
    if name == "whole-site":
        # See inventories/lab/group_vars/all.yml.
        variables.update(preflight_require_time_sync=False, nccl_stack_packages=["nccl-tests"],
                         aidc_sources=made["vars"]["aidc_sources"])
    connection = {key: value for key, value in made["vars"].items() if key.startswith("ansible_")}
    (folder / "hosts.yml").write_text(yaml.safe_dump({
        "all": {"vars": connection},
        "l40s": {"hosts": {host: {**(entries[host] or {}), "ansible_host": address[host]} for host in HOSTS},
                 "vars": variables}}), encoding="utf-8")
    return Lab(lab.instance, folder)


def run(lab: Lab, name: str) -> list[Play]:
    done = []
    for argv in commands(name):
        index = argv.index("-i")
        done.append(lab.play(*argv[:index], *argv[index + 2:]))
        assert done[-1].code == 0, done[-1].text[-4000:]
        assert done[-1].hosts() == HOSTS
    assert done
    return done


@pytest.fixture(scope="module")
def hand(labs: Labs) -> Lab:
    lab = labs("hand", "tests/integration/fleets/small.yml")
    mirror = yaml.safe_load((lab.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]["vars"]["aidc_sources"][
        "apt"]["repositories"][0]["uris"][0]
    for number, host in enumerate(HOSTS, 1):
        rails = " ".join(f"{rail}={subnet.replace('0/24', f'{number}/24')}"
                         for rail, subnet in zip(RAILS, SUBNETS, strict=True))
        lab.inside(host, "sh", "-c", BY_HAND.format(mirror=mirror, rails=rails, mtu=4200))
    return lab


def test_only_the_gate(hand: Lab, tmp_path: Path) -> None:
    ping = hand.inventory.parent / "hand-ping.yml"
    ping.write_text("[{hosts: all, gather_facts: false, tasks: [{name: Ping, ansible.builtin.ping: {}}]}]\n",
                    encoding="utf-8")
    # Whoever used Ansible on these hosts before has its folder in the home directory.
    assert hand.play(str(ping)).code == 0
    before = {host: hand.snapshot(host) for host in HOSTS}
    play, = run(write(hand, "gate-only", tmp_path), "gate-only")
    assert play.changed() == {}
    reports = json.loads((tmp_path / ".state" / "gate" / "l40s.json").read_text(encoding="utf-8"))
    assert (reports["label"], reports["hosts"]) == ("PASS (SIMULATED)", HOSTS)
    for host in HOSTS:
        # The newest logs of the login user, and nothing else.
        left = [line for line in snapshot.difference(before[host], hand.snapshot(host))
                if "/.aidc" not in line and not line.startswith(f"/home/{USER}")]
        assert left == []


def test_only_roce(hand: Lab, tmp_path: Path) -> None:
    before = {host: hand.snapshot(host) for host in HOSTS}
    for host in HOSTS:
        hand.inside(host, "ip", "link", "set", RAILS[0], "mtu", "1500")
    lab = write(hand, "roce-only", tmp_path)
    play, = run(lab, "roce-only")
    # Ports, QoS, the GID's section of the intent, the boot tool.
    assert play.changed() == {host: 4 for host in HOSTS}
    for host in HOSTS:
        assert hand.inside(host, "cat", f"/sys/class/net/{RAILS[0]}/mtu").stdout == "4200\n"
        pfc = json.loads(hand.inside(host, "dcb", "-j", "pfc", "show", "dev", RAILS[1]).stdout)
        assert pfc["prio_pfc"] == [priority == 3 for priority in range(8)]
        # MTU and QoS are running values here (the saved MTU is already right): no file, package or address is touched,
        # but what sets them again at boot is there.
        left = [line for line in snapshot.difference(before[host], hand.snapshot(host))
                if "/run/" not in line and not line.startswith("dcb ") and not BOOT_TOOL.search(line)]
        assert left == []
        gid = play.results("aidc.gpu_cluster.roce_gid")[host]["ports"][0]
        assert gid["address"] == SUBNETS[0].replace("0/24", f"{HOSTS.index(host) + 1}")
    assert lab.play(*commands("roce-only")[0][:1]).changed() == {}


def by_hand(lab: Lab, host: str) -> str:
    return lab.inside(host, "sh", "-c", "sha256sum /etc/systemd/network/30-*.network").stdout


def test_the_whole_site(hand: Lab, tmp_path: Path) -> None:
    files = {host: by_hand(hand, host) for host in HOSTS}
    lab = write(hand, "whole-site", tmp_path)
    planned, real = run(lab, "whole-site")
    assert planned.changed() == {} or set(planned.changed()) == set(HOSTS)
    data = json.loads((tmp_path / ".state" / "plan.json").read_text(encoding="utf-8"))["hosts"]
    assert sorted(data) == HOSTS and all("rail_network" in entry["roles"] for entry in data.values())
    assert set(real.changed()) == set(HOSTS)
    for number, host in enumerate(HOSTS, 1):
        found = json.loads(hand.inside(host, "ip", "-j", "-4", "address", "show", RAILS[0]).stdout)[0]["addr_info"]
        # The plan has the address that the host has had; it is now in a file of ours, too.
        assert [entry["local"] for entry in found] == [f"10.31.0.{number}"]
        assert hand.inside(host, "sh", "-c", "ls /etc/systemd/network/30-*.network.d/*aidc*").stdout.count("\n") == 2
        assert by_hand(hand, host) == files[host]
    assert lab.play("site.yml").changed() == {}
