# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._discover import propose, write

from tests.unit.plugins.module_utils._discover.case import TRAY_RAILS, Results, classes, epyc, l40s, tray

HOSTS = """\
---
# Written by playbooks/discover.yml from what the hosts are. Replace CHANGEME, rename leaves and domains as you like.
all:
  vars:
    ansible_user: "ops team"
  children:
    gb200:
      hosts:
        g1: {ansible_host: "192.0.2.1", nvlink_domain: nvl1, rail_network_node_index: 1}
        g2: {ansible_host: "192.0.2.2", nvlink_domain: CHANGEME, rail_network_node_index: CHANGEME, @SUBNETS@}
    unknown:
      hosts:
        # its hardware is of no class
        x1: {ansible_host: "192.0.2.3"}
    leaf1:
      hosts:
        g1:
      vars:
        rail_network_subnets: ["198.51.0.0/24", "198.51.1.0/24", "198.51.2.0/24", "198.51.3.0/24"]
# nvlink_domain nvl1: 3f1b2c4d-0000-4000-8000-00000000000a.1
""".replace("@SUBNETS@", "rail_network_subnets: CHANGEME")
SITE = """\
---
# What the class file does not say, or says differently: 00-class.yml is gb200 as it should be.
mlx5_port_rails:
  - {rail: 0, pci: "0000:03:00.0"}
  - {rail: 1, pci: "0002:03:00.0"}
  - {rail: 2, pci: "0010:03:00.0"}
  - {rail: 3, pci: "0012:03:00.0"}
rail_network_rails: "{{ mlx5_port_rails }}"
"""


def files(*results: Results, connections: dict[str, dict[str, t.Any]] | None = None) -> dict[str, str]:
    return write.files(propose.fleet([one.host() for one in results], classes()), connections or {})


def bare(results: Results) -> Results:
    for netdev in results.info["netdevs"]:
        netdev["addresses"] = []
    return results


def test_hosts_file() -> None:
    second, login = bare(tray("g2")), epyc("x1")
    second.info["nvlink_domain"] = None
    login.lose_nic(0)
    login.info["cpu"] = {"cores": 4}
    ways = {name: {"ansible_host": f"192.0.2.{number}", "ansible_user": "ops team"}
            for number, name in enumerate(("g1", "g2", "x1"), 1)}
    made = files(tray(), second, login, connections=ways)
    assert made["hosts.yml"] == HOSTS
    assert made["group_vars/gb200/10-site.yml"] == SITE
    assert made["group_vars/gb200/00-class.yml"] == classes()[1].text
    assert set(made) == {"hosts.yml", "group_vars/all.yml", "group_vars/gb200/00-class.yml",
                         "group_vars/gb200/10-site.yml"}, "nothing for the unknown"


def test_subnets_that_no_host_of_a_class_tells_are_asked_for_once() -> None:
    made = files(bare(l40s()), bare(l40s("l2")))
    assert "rail_network_subnets: CHANGEME  #" in made["group_vars/l40s/10-site.yml"]
    assert "rail_network_subnets" not in made["hosts.yml"]


def test_no_password_is_written() -> None:
    ways = {"g1": {"ansible_host": "192.0.2.1", "ansible_password": "secret", "ansible_become_password": "secret"}}
    assert "secret" not in "".join(files(tray(), connections=ways).values())


def test_what_all_hosts_have_otherwise_is_said_and_a_fault_is_not() -> None:
    hosts = [tray("g1"), tray("g2", 2)]
    for results in hosts:
        results.info["architecture"], results.info["cpu"] = "x86_64", {"cores": 2}
        results.port(0)["speed_gbps"] = 200.0
    text = files(*hosts)["group_vars/gb200/10-site.yml"]
    assert ("node_class_architecture: x86_64  # the class says aarch64\n"
            "node_class_cpu_cores: 2  # the class says 144\n") in text
    assert "speed" not in text
    hosts[1].info["architecture"] = "aarch64"
    assert "architecture" not in files(*hosts)["group_vars/gb200/10-site.yml"]


def test_a_host_that_lacks_a_card_has_its_class_rails_and_another_board_its_own() -> None:
    lost, other = tray("g2", 2), tray("g3", 3)
    lost.lose_nic(1)
    other.mlx5["devices"][0]["pci"] = other.info["nics"][0]["pci"] = "0000:05:00.0"
    made = files(tray(), tray("g4", 4), lost, other)
    assert [line for line in made["group_vars/gb200/10-site.yml"].splitlines() if "pci" in line] == [
        f'  - {{rail: {number}, pci: "{pci}"}}' for number, pci in enumerate(TRAY_RAILS)]
    lines = made["hosts.yml"].splitlines()
    assert lines.count("          mlx5_port_rails:") == 1
    assert lines.index("        g3:") < lines.index('            - {rail: 0, pci: "0000:05:00.0"}')


def test_rails_that_the_class_file_has_are_not_written_again() -> None:
    fleet = propose.fleet([l40s().host()], classes())
    one = fleet.proposals[0].node_class
    assert one is not None
    said = {**one.variables, "rail_network_rails": "x", "mlx5_port_rails": [
        {"rail": 0, "pci": "0000:41:00.0"}, {"rail": 1, "pci": "0000:c1:00.0"}]}
    text = write.site_file(type(one)(one.name, variables=said), fleet.proposals)
    assert text.splitlines()[2:] == []


def test_switches_are_named_where_lldp_told() -> None:
    results = bare(l40s())
    results.info["lldp"] = [{"netdev": f"rail{number}", "chassis": f"leaf0{number}"} for number in range(2)]
    text = files(results)["hosts.yml"]
    assert "      # Switches by LLDP: leaf00, leaf01\n      vars:\n        rail_network_subnets: CHANGEME\n" in text


@pytest.mark.parametrize(("value", "text"), [
    ("gb1", "gb1"), ("10.0.0.1", '"10.0.0.1"'), ("yes", '"yes"'), ("a: b", '"a: b"'), (3, "3"), (True, "true"),
    ("", '""')])
def test_scalar(value: t.Any, text: str) -> None:
    assert write.scalar(value) == text
