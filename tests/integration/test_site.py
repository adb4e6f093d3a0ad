# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""site.yml on the lab: converge, change nothing again, put back what was changed, survive a reboot."""
from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import CLASS_HOSTS, NAME, Lab, Play
from tests.lab_plugin import Labs

HOSTS = [name for names in CLASS_HOSTS.values() for name in names]
# Interface names as the shapes give them; told apart here from what the product finds out.
RAILS = {
    "gb200": ["enp3s0f0np0", "enP2p3s0f0np0", "enP16p3s0f0np0", "enP18p3s0f0np0"],
    "l40s": ["enp65s0f0np0", "enp193s0f0np0"],
    "epyc9754": ["enp129s0f0np0"],
}
MTU = 4200
DROP_IN = "/etc/systemd/network/20-{}.network.d/60-aidc-rail.conf"
# The part of site.yml that these tests are about: tools, addresses and ports, without the other roles and the gate.
FABRIC = ("playbooks/fabric.yml", "--tags", "rdma_stack,rail_network,mlx5_port")
# The MTU's owner; mlx5_port verifies it.
MODULE = "aidc.gpu_cluster.rail_network"
PORT_MODULE = "aidc.gpu_cluster.mlx5_port"
# Program -> package that brings it, by a role.
PROGRAMS = {"ibv_devinfo": "ibverbs-utils", "ethtool": "ethtool", "ib_write_bw": "perftest", "mstconfig": "mstflint",
            "setpci": "pciutils",
            "prterun": "openmpi-bin", "all_reduce_perf": "nccl-tests"}
GPU_PACKAGES = ("openmpi-bin", "nccl-tests")


def rails_of(host: str) -> list[str]:
    return RAILS[next(name for name, hosts in CLASS_HOSTS.items() if host in hosts)]


def mtu(lab: Lab, host: str, interface: str) -> int:
    """By iproute2 over SSH: a tool that is not ours."""
    link = json.loads(lab.host(host).check_output("ip -j link show %s", interface))
    return int(link[0]["mtu"])


def active_mtu(lab: Lab, host: str) -> list[int]:
    output = lab.host(host).check_output("ibv_devinfo")
    return [int(line.split()[1]) for line in output.splitlines() if line.strip().startswith("active_mtu:")]


def state_of(lab: Lab, host: str) -> str:
    """What a run could change: packages, files of /etc, links; without what changes by itself."""
    return lab.inside(host, "sh", "-c", "dpkg-query -W; find /etc /usr/local /opt -type f -exec sha256sum {} + | sort; "
                                        "ip -o link; ls /var/lib/apt/lists").stdout


@pytest.fixture(scope="module")
def bare(lab: Lab) -> dict[str, str]:
    """Before anything is configured: the hosts are bare, so that a first run has something to do."""
    assert {mtu(lab, host, rail) for host in HOSTS for rail in rails_of(host)} == {1500}
    found = {host: state_of(lab, host) for host in HOSTS}
    for host in HOSTS:
        assert "\nsystemd\t" in found[host], "the listing of packages sees nothing"
        for program in PROGRAMS:
            assert lab.inside(host, "sh", "-c", f"command -v {program}", check=False).returncode != 0, program
    return found


@pytest.fixture(scope="module")
def predicted(lab: Lab, bare: dict[str, str]) -> Play:
    return lab.play("site.yml", "--check", "--diff")


@pytest.fixture(scope="module")
def first(lab: Lab, labs: Labs, predicted: Play) -> Play:
    done = lab.play("site.yml")
    if done.code == 0:
        labs.converged.add(NAME)
    return done


def test_check_mode_on_bare_hosts_predicts_and_changes_nothing(lab: Lab, bare: dict[str, str], predicted: Play) -> None:
    assert predicted.code == 0, predicted.text[-4000:]
    assert sorted(predicted.changed()) == sorted(HOSTS)
    assert {host: state_of(lab, host) for host in HOSTS} == bare
    told = unpredictable(predicted)
    assert {host for role, host in told if role == "mlx5_port"} == set(HOSTS)


def role_of(task: dict[str, Any]) -> str:
    return str(task["task"]["name"]).split(" : ")[0].rsplit(".", 1)[-1]


def unpredictable(play: Play) -> set[tuple[str, str]]:
    """(role, host) of which a run in check mode said that it cannot know, and until when."""
    found = {(role_of(task), host) for task in play.tasks if "cannot be predicted" in task["task"]["name"]
             for host, result in task["hosts"].items() if "unpredictable until role" in str(result.get("msg"))}
    assert found
    return found


def test_no_change_is_missing_from_the_prediction(predicted: Play, first: Play) -> None:
    """Task by task: what changed was predicted, or its role said that it cannot know."""
    def changes(play: Play) -> set[tuple[str, str, str]]:
        return {(task["task"]["name"], role_of(task), host) for task in play.tasks
                for host, result in task["hosts"].items() if result.get("changed")}

    told = unpredictable(predicted)
    missing = {entry for entry in changes(first) - changes(predicted) if entry[1:] not in told}
    assert missing == set()
    assert changes(predicted) <= changes(first)


def test_each_tool_came_through_a_role_from_the_labs_repository(lab: Lab, first: Play) -> None:
    log = (lab.instance.dir / "repository.log").read_text(encoding="utf-8")
    for host in HOSTS:
        for program, package in PROGRAMS.items():
            if package in GPU_PACKAGES and host not in CLASS_HOSTS["gb200"] + CLASS_HOSTS["l40s"]:
                continue
            where = lab.host(host).check_output("readlink -f $(command -v %s)", program)
            assert lab.host(host).check_output("dpkg -S %s", where).split(":")[0] == package
            address = f"10.77.0.{['login1', *HOSTS].index(host) + 1} "
            fetched = [line for line in log.splitlines() if line.startswith(address) and f"/{package}_" in line]
            assert fetched, f"{host} did not fetch {package}"
        # Signed: apt itself checked it, and no other source is in use.
        policy = lab.host(host).check_output("apt-cache policy")
        assert "10.77.0.254" in policy and policy.count("http") == policy.count("http://10.77.0.254")


def test_first_run_configures_every_rail(lab: Lab, first: Play) -> None:
    assert first.code == 0, first.text[-4000:]
    # Host count first: a run over no hosts changes nothing and fails nothing.
    assert sorted(set(first.stats) - {"localhost"}) == sorted(HOSTS)
    assert len(HOSTS) == 7
    assert sorted(first.changed()) == sorted(HOSTS)
    for host in HOSTS:
        assert {mtu(lab, host, rail) for rail in rails_of(host)} == {MTU}, host
        assert active_mtu(lab, host) == [4096] * len(rails_of(host)), host
        for rail in rails_of(host):
            file = lab.host(host).file(DROP_IN.format(rail))
            assert file.is_file and file.mode == 0o644 and file.user == "root"
            assert f"MTUBytes={MTU}" in file.content_string


def test_last_screen_names_every_rail(first: Play) -> None:
    shown = [str(result.get("msg")) for task in first.tasks for result in task["hosts"].values()
             if result.get("action") == "ansible.builtin.debug"]
    for host in HOSTS:
        assert any(host in text for text in shown), f"{host} is not in the table"
    assert any("4096" in text and str(MTU) in text and "10.21." in text for text in shown)
    assert any("gb200" in text and "PASS (SIMULATED)" in text and "NOT TESTED" in text for text in shown)


def test_second_run_changes_nothing(lab: Lab, first: Play) -> None:
    again = lab.play("site.yml")
    assert again.code == 0, again.text[-4000:]
    assert sorted(set(again.stats) - {"localhost"}) == sorted(HOSTS)
    assert again.changed() == {}


@pytest.mark.slow  # the whole site once more
def test_check_mode_on_a_configured_host_predicts_nothing(lab: Lab, first: Play) -> None:
    predicted = lab.play("site.yml", "--check", "--diff")
    assert predicted.code == 0, predicted.text[-4000:]
    assert predicted.changed() == {}


def commands(play: Play, host: str) -> Any:
    return play.results(MODULE)[host]["commands"]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "undo"), [
    ("runtime", "ip link set {} mtu 1500"),
    ("persistent", "rm {file}"),
    ("persistent value", "sed -i s/4200/9000/ {file}"),
])
def test_one_value_changed_behind_our_back_is_put_back_alone(lab: Lab, first: Play, what: str, undo: str) -> None:
    host, rail = "gb3", RAILS["gb200"][2]
    lab.inside(host, "sh", "-c", undo.format(rail, file=DROP_IN.format(rail)))
    predicted = lab.play(*FABRIC, "--check", "--diff")
    assert predicted.code == 0, predicted.text[-4000:]
    done = lab.play(*FABRIC, "--diff")
    assert done.code == 0, done.text[-4000:]
    assert done.changed() == {host: 1}
    assert predicted.changed() == done.changed()
    # Check mode tells the whole truth: the same commands and the same difference.
    assert commands(predicted, host) == commands(done, host)
    assert predicted.results(MODULE)[host]["diff"] == done.results(MODULE)[host]["diff"]
    touched = json.dumps(commands(done, host))
    assert rail in touched
    assert not any(other in touched for other in rails_of(host) if other != rail)
    assert mtu(lab, host, rail) == MTU
    assert f"MTUBytes={MTU}" in lab.host(host).file(DROP_IN.format(rail)).content_string
    assert lab.play(*FABRIC).changed() == {}


REBOOT = """
- hosts: l40s1
  gather_facts: false
  tasks:
    - ansible.builtin.reboot: {reboot_timeout: 60}
      become: true
"""


def reboot(lab: Lab, host: str) -> None:
    before = lab.host(host).check_output("cat /proc/sys/kernel/random/boot_id")
    file = lab.inventory.parent / f"{lab.inventory.name}-reboot.yml"
    file.write_text(REBOOT.replace("l40s1", host), encoding="utf-8")
    done = lab.play(str(file))
    assert done.code == 0, done.text[-4000:]
    assert done.changed() == {host: 1}
    assert lab.host(host).check_output("cat /proc/sys/kernel/random/boot_id") != before


@pytest.mark.slow
def test_after_a_reboot_the_mtu_comes_from_the_file_and_only_from_it(lab: Lab, first: Play) -> None:
    host, (kept, removed) = "l40s1", RAILS["l40s"]
    lab.inside(host, "rm", DROP_IN.format(removed))
    reboot(lab, host)
    deadline = time.monotonic() + 10
    while mtu(lab, host, kept) != MTU and time.monotonic() < deadline:
        time.sleep(0.2)
    assert (mtu(lab, host, kept), mtu(lab, host, removed)) == (MTU, 1500)
    assert sorted(active_mtu(lab, host)) == [1024, 4096]
    # The MTU alone: what the class wants of the ports, and QoS, the boot tool has set again.
    assert lab.play(*FABRIC).changed() == {host: 1}
    assert mtu(lab, host, removed) == MTU


FAULTS = {
    "hung": "#!/bin/sh\nexec sleep 1000\n",
    "hung and ignoring TERM": "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n",
    "garbage": "#!/bin/sh\nhead -c 4000 /dev/urandom\n",
    "failing": "#!/bin/sh\necho 'Failed to get IB devices list: Function not implemented' >&2\nexit 255\n",
}
TOOL = "/usr/bin/ibv_devinfo"


@pytest.fixture
def broken_tool(lab: Lab, first: Play, request: pytest.FixtureRequest) -> Iterator[str]:
    host, kind = "l40s2", request.param
    lab.inside(host, "mv", TOOL, f"{TOOL}.away")
    if kind in FAULTS:
        lab.inside(host, "sh", "-c", f"cat > {TOOL} <<'EOF'\n{FAULTS[kind]}EOF\nchmod 755 {TOOL}")
    yield kind
    lab.inside(host, "mv", "-f", f"{TOOL}.away", TOOL)
    lab.inside(host, "pkill", "-9", "-f", TOOL, check=False)


def pause(lab: Lab, host: str, rail: str) -> int:
    """How many of the two directions are on; by ethtool."""
    return lab.inside(host, "ethtool", "-a", rail).stdout.count("X:\t\ton")


@pytest.mark.slow
@pytest.mark.parametrize("broken_tool", [*FAULTS, "missing"], indirect=True)
def test_broken_ibv_devinfo_gives_a_clear_result_and_no_change(lab: Lab, broken_tool: str) -> None:
    host = "l40s2"
    rail = rails_of(host)[0]
    # A setting of mlx5_port's own, which asks the tool; the MTU is rail_network's, which does not.
    lab.inside(host, "ethtool", "-A", rail, "rx", "on", "tx", "on")
    assert pause(lab, host, rail) == 2
    start = time.monotonic()
    done = lab.play(*FABRIC, "--limit", f"{host},localhost")
    seconds = time.monotonic() - start
    assert done.code != 0
    assert seconds < 60, f"{seconds:.0f} s"
    assert "Traceback" not in done.text
    if broken_tool == "missing":
        assert "not found: ibv_devinfo after the installation of" in done.results("ansible.builtin.assert")[host]["msg"]
    else:
        message = done.results(PORT_MODULE)[host]["msg"]
        assert "ibv_devinfo" in message
        assert "nothing was changed" in message.lower()
    assert pause(lab, host, rail) == 2
    lab.inside(host, "ethtool", "-A", rail, "rx", "off", "tx", "off")
    assert lab.inside(host, "pgrep", "-f", TOOL, check=False).stdout == "", "the tool still runs"


@pytest.mark.slow
def test_killed_between_two_writes_the_next_run_converges(lab: Lab, first: Play) -> None:
    """What a run leaves that was killed after the runtime write, or in the middle of the file write."""
    host, rails = "gb2", RAILS["gb200"]
    for rail in rails:
        lab.inside(host, "rm", "-r", DROP_IN.format(rail).rsplit("/", 1)[0])
        lab.inside(host, "ip", "link", "set", rail, "mtu", "1500")
    lab.inside(host, "networkctl", "reload")
    lab.inside(host, "ip", "link", "set", rails[0], "mtu", str(MTU))
    folder = DROP_IN.format(rails[1]).rsplit("/", 1)[0]
    lab.inside(host, "sh", "-c", f"mkdir {folder} && printf '[Link]\\nMTUBy' > {folder}/.60-aidc-rail.conf.tmp")
    assert lab.play(*FABRIC).changed() == {host: 1}
    assert {mtu(lab, host, rail) for rail in rails} == {MTU}
    assert lab.play(*FABRIC).changed() == {}


@pytest.mark.slow
def test_hardware_model_killed_gives_errors_and_no_hang(lab: Lab, first: Play) -> None:
    host = "epyc1"
    outside = lab.instance.host_cgroup(host) / "outside" / "cgroup.procs"
    daemon = [pid for pid in outside.read_text(encoding="ascii").split()
              if b"lab.hardware.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(daemon) == 1
    os.kill(int(daemon[0]), signal.SIGKILL)
    start = time.monotonic()
    tool = lab.inside(host, "timeout", "5", "ibv_devinfo", check=False)
    reading = lab.inside(host, "timeout", "5", "cat", "/sys/class/infiniband/mlx5_0/fw_ver", check=False)
    assert tool.returncode not in (0, 124)
    assert reading.returncode == 1 and "not connected" in reading.stderr
    done = lab.play(*FABRIC, "--limit", f"{host},localhost")
    assert done.code != 0 and "Traceback" not in done.text
    assert time.monotonic() - start < 60
    # A reboot brings a new model.
    reboot(lab, host)
    assert lab.play(*FABRIC).code == 0
