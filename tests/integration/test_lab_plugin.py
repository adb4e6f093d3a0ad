# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labs of the tests: started once, reachable, told apart when changed, removed after a failure."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.instance import Instance
from tests import snapshot
from tests.lab_plugin import ROOT, Lab, Labs

NAME, INNER_NAME = "mplugin", "minner"
FLEET = """
management: 10.79.0.0/24
leaves: {leaf1: 10.32.0.0/16}
hosts:
  - {name: one, class: l40s, leaf: leaf1}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fleet") / "fleet.yml"
    file.write_text(FLEET, encoding="utf-8")
    return file


@pytest.fixture
def small(labs: Labs, fleet: Path) -> Lab:
    return labs(NAME, fleet)


def test_a_lab_is_started_once(labs: Labs, small: Lab, fleet: Path) -> None:
    pid = (small.instance.host_dir("one") / "pid").read_text(encoding="ascii")
    assert labs(NAME, fleet).inventory == small.inventory
    assert (small.instance.host_dir("one") / "pid").read_text(encoding="ascii") == pid
    with pytest.raises(AssertionError, match="got fleet default"):
        labs(NAME)
    assert small.hosts() == small.hosts("l40s") == ["one"]
    assert small.host("one").check_output("id -un") == "root"
    assert small.inside("one", "hostname").stdout == "one\n"


# What each does to the host, and a text that the difference must have.
CHANGES = {
    "a new file": ("touch /etc/new", "/etc/new: not there -> "),
    "a file written and put back with its old time": (
        "cp -p /etc/hostname /root/old && echo x > /etc/hostname && cp -p /root/old /etc/hostname && rm /root/old",
        "/etc/hostname: "),
    "a mode": ("chmod 600 /etc/fstab /etc/passwd; chmod 644 /etc/passwd", "/etc/passwd: "),
    "a file that went": ("rm -f /etc/issue.net /etc/issue", "/etc/issue: "),
    "an MTU": ("ip link set enp65s0f0np0 mtu 4200", "/net/enp65s0f0np0/mtu: "),
    "an address": ("ip address add 10.9.9.9/32 dev lo", "10.9.9.9"),
    "a rule": ("ip rule add to 10.9.9.0/24 table 99", "ip rule: "),
    "a queueing discipline": ("tc qdisc add dev enp193s0f0np0 root pfifo limit 10", "tc qdisc: "),
    "a sysctl": ("echo 1 > /proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_forward: "),
    "a service": ("systemctl stop systemd-udevd.service systemd-udevd-control.socket", "systemd-udevd.service"),
}


def test_a_snapshot_stays_and_tells_every_change(small: Lab) -> None:
    small.host("one").check_output("true")  # the first login may leave something
    before = small.snapshot("one")
    # What a run of a play is on a host when it changes nothing: a login, Python, sudo.
    small.host("one").check_output("true")
    assert "\n".join(snapshot.difference(before, small.snapshot("one"))) == ""
    for what, (script, text) in CHANGES.items():
        small.inside("one", "sh", "-c", script)
        after = small.snapshot("one")
        found = snapshot.difference(before, after)
        assert any(text in line for line in found), f"{what}: {found}"
        before = after


INNER = """
from tests.lab_plugin import labs

def test_fails(labs):
    assert labs({name!r}, {fleet!r}).hosts() == ["other"]
"""


def test_a_lab_is_removed_after_a_failure(fleet: Path, tmp_path: Path) -> None:
    file = tmp_path / "test_inner.py"
    file.write_text(INNER.format(name=INNER_NAME, fleet=str(fleet)), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir",
                           str(tmp_path), str(file)], cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "assert ['one'] == ['other']" in done.stdout
    assert not Instance(INNER_NAME).exists()
