# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site that is harder to get into: a bastion, a password for sudo, no root. site.yml as a user would run it."""
from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab_plugin import Lab, Labs

HOSTS = ["gb1", "gb2"]
RAIL = "enp3s0f0np0"


@pytest.fixture(scope="module")
def site(labs: Labs) -> Iterator[Lab]:
    with labs.during("acc", "access") as lab:
        yield lab


def ssh(site: Lab, *argv: str) -> subprocess.CompletedProcess[str]:
    config = site.instance.dir / "ssh_config"
    return subprocess.run(["ssh", "-F", str(config), "-o", "ConnectTimeout=10", *argv], capture_output=True, text=True,
                          check=False, timeout=60, stdin=subprocess.DEVNULL)


def test_the_hosts_see_the_bastion_and_nobody_else(site: Lab) -> None:
    done = ssh(site, "gb1", "echo $SSH_CONNECTION")
    assert done.stdout.split()[0] == "10.77.0.1"
    # The way that works for the bastion, with the same key, to another address.
    assert ssh(site, "login1", "true").returncode == 0
    refused = ssh(site, "-o", "HostName=10.77.0.2", "login1", "true")
    assert refused.returncode == 255
    assert "Permission denied" in refused.stderr


@pytest.mark.parametrize("host", ["login1", *HOSTS])
def test_root_has_no_way_in(site: Lab, host: str) -> None:
    refused = ssh(site, f"root@{host}", "true")
    assert refused.returncode == 255
    assert "Permission denied" in refused.stderr


def test_sudo_wants_the_password_of_the_inventory(site: Lab) -> None:
    assert "password is required" in ssh(site, "gb1", "sudo -n true").stderr
    assert ssh(site, "login1", "sudo -n true").returncode == 0
    secret = (site.instance.dir / "become_password")
    assert secret.stat().st_mode & 0o077 == 0
    assert secret.read_text(encoding="ascii") not in (site.inventory / "hosts.yml").read_text(encoding="utf-8")


@pytest.mark.slow  # site.yml twice more
def test_site_converges_passes_the_gate_and_changes_nothing_again(site: Lab) -> None:
    first = site.play("site.yml", may_meet_nobody=True)
    assert first.code == 0, first.text[-4000:]
    assert first.hosts() == HOSTS
    assert "PASS (SIMULATED)" in first.text
    for host in HOSTS:
        assert site.inside(host, "cat", f"/sys/class/net/{RAIL}/mtu").stdout == "4200\n"
    again = site.play("site.yml", may_meet_nobody=True)
    assert again.code == 0, again.text[-4000:]
    assert again.changed() == {}
    secret = Path(site.instance.dir / "become_password").read_text(encoding="ascii")
    assert secret not in first.text + again.text


def test_a_wrong_password_is_a_clear_error_and_nothing_changes(site: Lab) -> None:
    before = site.inside("gb1", "cat", "/etc/shadow").stdout
    done = site.play("playbooks/fabric.yml", "-e", "ansible_become_password=wrong", may_meet_nobody=True)
    assert done.code != 0
    assert "incorrect" in done.text.lower() and "password" in done.text.lower()
    assert site.inside("gb1", "cat", "/etc/shadow").stdout == before
