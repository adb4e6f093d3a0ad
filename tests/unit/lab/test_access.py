# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a user gets in: ssh_config, known_hosts, the inventory's host part, the ProxyCommand's last words."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab import fleet, guest, inventory
from lab.guest import Keys
from lab.instance import Instance

ROOT = Path(__file__).resolve().parents[3]
CLASSES = {"gb200", "l40s", "epyc9754"}
FLEET = fleet.load(fleet.fleet_path("default"), CLASSES)
ACCESS = fleet.load(fleet.fleet_path("access"), CLASSES)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instance:
    made = Instance("unit")
    made.dir = tmp_path / "instance"
    made.dir.mkdir()
    return made


@pytest.fixture
def config(instance: Instance) -> Path:
    return access(instance, FLEET)


def access(instance: Instance, hosts: fleet.Fleet) -> Path:
    keys = Keys(instance.dir / "id_ed25519", instance.dir / "become_password")
    host_keys = {host.name: f"ssh-ed25519 KEY{host.number}" for host in hosts.hosts}
    return inventory.write_access(instance, hosts, keys, host_keys)


def settings_of(config: Path, host: str) -> dict[str, str]:
    text = subprocess.run(["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_ssh_reads_the_config_and_checks_host_keys(config: Path) -> None:
    settings = settings_of(config, "gb2")
    assert settings["hostname"] == "10.77.0.3"
    assert settings["user"] == "ops"
    assert settings["stricthostkeychecking"] in ("true", "yes")
    assert settings["proxyusefdpass"] == "yes"
    assert settings["proxycommand"].endswith("/run/netns/aidc-unit-fabric %h %p")


@pytest.mark.parametrize("host", ["gb2", "10.77.0.3"])
def test_all_but_the_jump_host_are_reached_through_it(instance: Instance, host: str) -> None:
    config = access(instance, ACCESS)
    jumped = settings_of(config, host)
    assert jumped["proxyjump"] == "login1"
    assert jumped["proxyusefdpass"] == "no"
    direct = settings_of(config, "login1")
    assert "proxyjump" not in direct
    assert direct["proxyusefdpass"] == "yes"


def test_a_password_for_sudo_stands_in_the_inventory_as_a_file_only(instance: Instance, tmp_path: Path) -> None:
    target = inventory.write(instance, ACCESS, access(instance, ACCESS), tmp_path / "inventory")
    data = yaml.safe_load(target.read_text(encoding="utf-8"))["all"]["children"]
    assert data["gb200"]["hosts"]["gb1"]["ansible_become_password"] == \
        "{{ lookup('ansible.builtin.file', '" + str(instance.dir / "become_password") + "') }}"
    assert "ansible_become_password" not in data["login"]["hosts"]["login1"]


def test_password_hash_is_the_c_librarys() -> None:
    made = guest.password_hash("correct horse")
    assert made.startswith("$6$")
    assert made.count("$") == 3
    assert len(made.rsplit("$", 1)[1]) == 86
    assert made != guest.password_hash("correct horse"), "no salt"


def test_known_hosts_has_one_key_for_each_host(config: Path) -> None:
    lines = config.with_name("known_hosts").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(FLEET.hosts)
    assert "10.77.0.3 ssh-ed25519 KEY3" in lines


def test_inventory_groups_are_the_classes(instance: Instance, config: Path, tmp_path: Path) -> None:
    target = inventory.write(instance, FLEET, config, tmp_path / "inventory")
    data = yaml.safe_load(target.read_text(encoding="utf-8"))["all"]
    assert {group: sorted(body["hosts"]) for group, body in data["children"].items()} == {
        "login": ["login1"], "gb200": ["gb1", "gb2", "gb3", "gb4"], "l40s": ["l40s1", "l40s2"], "epyc9754": ["epyc1"]}
    assert data["children"]["gb200"]["hosts"]["gb3"] == {
        "ansible_host": "10.77.0.4", "nvlink_domain": "nvl2", "rail_network_node_index": 4,
        "rail_network_subnets": [f"10.21.{rail}.0/24" for rail in range(4)]}
    # Hosts without rails have no part in the plan of their addresses.
    assert data["children"]["login"]["hosts"]["login1"] == {"ansible_host": "10.77.0.1"}
    repository, = data["vars"]["aidc_sources"]["apt"]["repositories"]
    assert repository["uris"] == ["http://10.77.0.254/debian"]
    assert data["vars"]["ansible_control_path_dir"].startswith(str(instance.dir))
    # Another folder than the tracked one gets the tracked group_vars by a link.
    assert (tmp_path / "inventory/group_vars").resolve() == inventory.TRACKED / "group_vars"


@pytest.mark.parametrize(("arguments", "message"), [
    (["/run/netns/aidc-never-there", "192.0.2.1", "22"], "the lab is not up"),
    (["/proc/self/ns/net", "127.0.0.1", "1"], "no connection to ['127.0.0.1', '1']"),
    (["/proc/self/ns/net", "127.0.0.1", "ssh"], "no connection to"),
])
def test_proxy_command_says_one_line_when_it_fails(arguments: list[str], message: str) -> None:
    connect = Path(inventory.__file__).with_name("connect.py")
    done = subprocess.run([sys.executable, "-S", "-E", str(connect), *arguments],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_groups_of_the_fleet_file_hold_hosts_and_classes(instance: Instance) -> None:
    slurm = fleet.load(ROOT / "tests/integration/fleets/slurm.yml", CLASSES)
    children = inventory.hosts_file(instance, slurm, instance.dir / "ssh_config")["all"]["children"]
    assert children["slurm_controller"] == {"hosts": {"sctl": None}}
    assert children["slurm_compute"] == {"children": {"gb200": None, "l40s": None}}
