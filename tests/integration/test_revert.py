# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is reached through its rail: what cuts the connection is undone within its time, what does not stays."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab_plugin import BIN, ROOT, Lab, Labs, Play, run_lab

# Minutes: `make full` runs these.
pytestmark = pytest.mark.slow

HOST, FLEET = "imgmt", "tests/integration/fleets/idle.yml"
RAIL, OWN, MANAGEMENT, LEAF = "enp65s0f0np0", "10.22.0.2", "10.77.0.2", "10.22.0.254/24"
MODULE = "aidc.gpu_cluster.rail_network"
SECONDS = 15
ALLOWED = {"rail_network_allow_management": True, "rail_network_revert_seconds": SECONDS}
# So that the boot tool may set the rail while somebody is logged in through it.
AT_BOOT = {f"{role}_allow_management": True for role in ("rail_network", "mlx5_port", "roce_qos")}
# The number gives the address; 77 is one in the rail's subnet at which nobody looks for the host.
RIGHT, WRONG = 2, 77


@pytest.fixture(scope="module")
def playbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("play") / "rail.yml"
    path.write_text("- hosts: all\n  gather_facts: false\n  roles: [aidc.gpu_cluster.rail_network]\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Iterator[Lab]:
    """Set up through the management port, and reached through rail 0 from then on."""
    with labs.during("idlerev", FLEET) as found:
        for name in ("packages", "fabric"):
            done = found.play(f"playbooks/{name}.yml", "--limit", HOST, "-e", json.dumps(AT_BOOT))
            assert done.code == 0, done.text[-4000:]
        subprocess.run(["ip", "-n", found.instance.fabric, "addr", "add", LEAF, "dev", "leaf2-r0"], check=True)
        (found.inventory / "host_vars").mkdir(exist_ok=True)
        number(found, RIGHT)
        yield found


def number(lab: Lab, index: int) -> None:
    (lab.inventory / "host_vars" / f"{HOST}.yml").write_text(json.dumps({
        "ansible_host": OWN, "rail_network_node_index": index, "ansible_ssh_common_args":
            f"-F {lab.instance.dir / 'ssh_config'} -o HostKeyAlias={MANAGEMENT}"}), encoding="utf-8")


def run(lab: Lab, playbook: Path, *argv: str, **variables: Any) -> Play:
    return lab.play(str(playbook), "--limit", HOST, "-e", json.dumps(variables), *argv, timeout=240)


def message(play: Play) -> str:
    assert play.code != 0, play.text[-3000:]
    return str(play.results(MODULE)[HOST]["msg"])


def addresses(lab: Lab) -> list[str]:
    shown = json.loads(lab.inside(HOST, "ip", "-j", "-4", "addr", "show", "dev", RAIL).stdout)
    return [entry["local"] for entry in shown[0]["addr_info"]]


def timers(lab: Lab) -> str:
    script = ("systemctl list-units --all --no-legend 'aidc-revert*'; ls /var/lib/aidc/revert 2>/dev/null; "
              "find /etc/systemd/system -name 'aidc-revert*'")
    return lab.inside(HOST, "sh", "-c", script, check=False).stdout


def mtu(lab: Lab) -> str:
    return lab.inside(HOST, "cat", f"/sys/class/net/{RAIL}/mtu").stdout.strip()


def test_the_rail_is_refused_with_the_way_out(lab: Lab, playbook: Path) -> None:
    text = message(run(lab, playbook, mlx5_port_mtu_bytes=9000))
    assert f"carries the SSH connection ({OWN})" in text and "or allow_management: true" in text
    assert text.endswith("Nothing was changed.")


def test_a_change_that_does_not_cut_stays_and_the_timer_is_gone(lab: Lab, playbook: Path) -> None:
    predicted = run(lab, playbook, "--check", **ALLOWED, mlx5_port_mtu_bytes=9000)
    assert timers(lab) == "" and predicted.results(MODULE)[HOST]["armed"] is None
    real = run(lab, playbook, **ALLOWED, mlx5_port_mtu_bytes=9000)
    assert real.code == 0, real.text[-4000:]
    found = real.results(MODULE)[HOST]
    assert found["commands"] == predicted.results(MODULE)[HOST]["commands"] != []
    assert (found["armed"]["state"], found["armed"]["timer"]) == ("cancelled", "systemd")
    assert timers(lab) == ""
    time.sleep(SECONDS + 3)
    assert (mtu(lab), addresses(lab)) == ("9000", [OWN])
    again = run(lab, playbook, **ALLOWED, mlx5_port_mtu_bytes=9000)
    assert (again.code, again.changed(), again.results(MODULE)[HOST]["armed"]) == (0, {}, None)
    back = run(lab, playbook, **ALLOWED)
    assert (back.code, mtu(lab)) == (0, "4200")


def wait_until_back(lab: Lab, start: float) -> float:
    """Seconds until the address that was there is there again; it was gone before."""
    while OWN in addresses(lab) and time.monotonic() - start < 60:
        time.sleep(0.1)
    gone = time.monotonic()
    while OWN not in addresses(lab) and time.monotonic() - gone < 60:
        time.sleep(0.1)
    return time.monotonic() - gone


def start(lab: Lab, playbook: Path, seconds: int = SECONDS) -> subprocess.Popen[str]:
    number(lab, WRONG)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                   "LC_ALL": "C.UTF-8"}
    variables = json.dumps({**ALLOWED, "rail_network_revert_seconds": seconds})
    return subprocess.Popen(
        [str(BIN / "ansible-playbook"), "-i", str(lab.inventory), str(playbook), "--limit", HOST, "-e", variables],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True)


def told_once_then_right(lab: Lab, playbook: Path) -> None:
    """The next run with the same values says so and changes nothing; the one after it, with good ones, too."""
    text = message(run(lab, playbook, **ALLOWED))
    assert "an earlier run of rail_network: got the change was undone on the host at" in text, text
    assert text.endswith("Nothing was changed.")
    number(lab, RIGHT)
    good = run(lab, playbook, **ALLOWED)
    assert (good.code, good.changed(), timers(lab)) == (0, {}, "")


def test_a_change_that_cuts_is_undone_and_the_run_says_so(lab: Lab, playbook: Path) -> None:
    process = start(lab, playbook)
    away = wait_until_back(lab, time.monotonic())
    text, _none = process.communicate(timeout=200)
    assert process.returncode != 0
    assert away < SECONDS + 8, away
    assert "the change was undone on the host at" in text, text[-3000:]
    assert addresses(lab) == [OWN]
    told_once_then_right(lab, playbook)


def test_a_controller_that_died_is_not_waited_for(lab: Lab, playbook: Path) -> None:
    process = start(lab, playbook)
    begun = time.monotonic()
    while OWN in addresses(lab) and time.monotonic() - begun < 60:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    away = wait_until_back(lab, time.monotonic())
    assert away < SECONDS + 8, away
    assert addresses(lab) == [OWN]
    told_once_then_right(lab, playbook)


def test_a_host_that_is_power_cycled_comes_back_as_it_was(lab: Lab, playbook: Path) -> None:
    """Long before the time is over; the new address is in the manager's file already."""
    path = f"/etc/systemd/network/20-{RAIL}.network.d/60-aidc-rail.conf"
    before = lab.inside(HOST, "cat", path).stdout
    process = start(lab, playbook, 600)
    begun = time.monotonic()
    while OWN in addresses(lab) and time.monotonic() - begun < 60:
        time.sleep(0.1)
    assert lab.inside(HOST, "cat", path).stdout != before and "-boot.service" in timers(lab)
    run_lab("reboot", HOST, "--cold", name=lab.instance.name)
    assert addresses(lab) == [OWN] and lab.inside(HOST, "cat", path).stdout == before
    # The controller has been trying all the time, and now it gets through.
    text, _none = process.communicate(timeout=200)
    assert process.returncode != 0
    assert "because the host was rebooted before the controller had come back" in text, text[-3000:]
    number(lab, RIGHT)
    good = run(lab, playbook, **ALLOWED)
    # The unit has removed its own file; systemd remembers it until it reads them anew.
    lab.inside(HOST, "systemctl", "daemon-reload")
    assert (good.code, good.changed(), timers(lab)) == (0, {}, "")


def test_a_module_that_died_between_two_writes_is_undone_too(lab: Lab, playbook: Path) -> None:
    """networkd is asked to reload by a program that never comes back, and the module is killed meanwhile."""
    tool = "/usr/bin/networkctl"
    script = f"#!/bin/sh\\ncase $1 in reload) echo $$ >/run/hangs; sleep 1000;; esac\\nexec {tool}.real \"$@\"\\n"
    lab.inside(HOST, "sh", "-c", f"mv {tool} {tool}.real && printf '{script}' > {tool} && chmod 755 {tool}")
    path = f"/etc/systemd/network/20-{RAIL}.network.d/60-aidc-rail.conf"
    before = lab.inside(HOST, "cat", path).stdout
    process = start(lab, playbook)
    try:
        lab.inside(HOST, "sh", "-c", "for i in $(seq 300); do test -e /run/hangs && exit; sleep 0.1; done; exit 1")
        assert lab.inside(HOST, "cat", path).stdout != before
    finally:
        # The module is the parent of the program that hangs. Without one nothing is killed.
        lab.inside(HOST, "sh", "-euc", f"mv {tool}.real {tool}; pid=$(cat /run/hangs); "
                   "kill -9 $(ps -o ppid= -p $pid); kill -9 $pid")
    process.communicate(timeout=200)
    deadline = time.monotonic() + SECONDS + 10
    while lab.inside(HOST, "cat", path).stdout != before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab.inside(HOST, "cat", path).stdout == before
    time.sleep(3)
    assert addresses(lab) == [OWN]
    told_once_then_right(lab, playbook)
