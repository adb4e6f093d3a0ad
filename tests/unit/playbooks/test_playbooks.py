# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks as a user runs them, on inventories of these tests; no host is contacted."""
from __future__ import annotations

import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._fleet import store

ROOT = Path(__file__).resolve().parents[3]
LAB_VARS = ROOT / "inventories" / "lab" / "group_vars"


def playbook(inventory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )


def inventory(folder: Path, hosts: dict[str, t.Any]) -> Path:
    """The lab's tracked variables with these hosts."""
    (folder / "group_vars").symlink_to(LAB_VARS)
    children = {group: {"hosts": names} for group, names in hosts.items()}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": children}}), encoding="utf-8")
    return folder


def addressed(number: int) -> dict[str, t.Any]:
    """Addresses of a host, as the lab's inventory says them."""
    return {"rail_network_node_index": number, "rail_network_subnets": [f"10.21.{rail}.0/24" for rail in range(4)]}


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_sound_inventory(tmp_path: Path) -> None:
    path = inventory(tmp_path, {"gb200": {"g1": addressed(1)}, "l40s": {"l1": addressed(2)},
                                "epyc9754": {"e1": addressed(3)}, "login": {"x": {}}})
    done = playbook(path, "playbooks/validate.yml")
    assert done.returncode == 0, done.stdout
    assert "failed=0" in done.stdout
    assert "[WARNING]" not in done.stderr


def test_messages_name_file_and_key(tmp_path: Path) -> None:
    double = [{"rail": 0, "pci": "0000:03:00.0"}, {"rail": 1, "pci": "0000:03:00.0"}]
    path = inventory(tmp_path, {
        "gb200": {"g1": {"mlx5_port_rails": double}, "two": {}},
        "l40s": {"l1": {"mlx5_port_mtu_bytes": 1500}, "two": {}},
        "epyc9754": {"e1": {"mlx5_port_rails": []}},
    })
    done = playbook(path, "playbooks/validate.yml")
    out = words(done.stdout)
    assert done.returncode == 2
    assert "variables: mlx5_port_rails: got pci 0000:03:00.0 more than once" in out
    assert f"edit {tmp_path}/group_vars/gb200/ or {tmp_path}/host_vars/g1.yml" in out
    assert "l1: variables: mlx5_port_mtu_bytes: got 1500, which gives RDMA MTU 1024" in out
    assert "mlx5_port_rails: got []" in out
    assert f"two: classes: got gb200 and l40s, wanted one, edit {tmp_path}/hosts.yml" in out


def test_one_unsound_node_stops_the_site_before_any_is_touched(tmp_path: Path) -> None:
    path = inventory(tmp_path, {"l40s": {"good": {}, "bad": {"mlx5_port_mtu_bytes": 1500}}})
    done = playbook(path, "site.yml")
    assert done.returncode == 2
    assert "RoCE fabric of the nodes" not in done.stdout


@pytest.mark.parametrize("hosts", [{"login": {"x": {}}}, {"gb200": {}}])
def test_no_nodes_is_an_error(tmp_path: Path, hosts: dict[str, t.Any]) -> None:
    done = playbook(inventory(tmp_path, hosts), "site.yml")
    assert done.returncode == 2
    assert "the groups gb200, l40s and epyc9754 are empty" in words(done.stdout)


def off(value: t.Any) -> dict[str, t.Any]:
    """Every role that would contact the node off; unquoted, YAML makes a boolean of it."""
    return {f"{role.name}_mode": value for role in (ROOT / "roles").iterdir()}


def test_site_reads_the_fleet_record_and_prints_the_table(tmp_path: Path) -> None:
    path = inventory(tmp_path, {"gb200": {"g1": off("off"), "g2": off(False)}})
    port = {"state": "ACTIVE", "netdev": "rail0", "mtu_bytes": 4200, "rdma_mtu_bytes": 4096, "gids": []}
    device = {"pci": "0000:03:00.0", "rail": 0, "rdma_device": "mlx5_0", "ports": [port]}
    store.store(tmp_path / ".state", "mlx5_info", "g1", {"devices": [device]}, None)
    done = playbook(path, "site.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "g1 0 0000:03:00.0 rail0 mlx5_0 ACTIVE 4200 4096" in words(done.stdout)
    assert "g2 - no record" in words(done.stdout)
    assert "changed=0" in done.stdout


def test_the_action_stores_a_record_of_a_real_module_run(tmp_path: Path) -> None:
    path = inventory(tmp_path, {"gb200": {"g1": {"ansible_connection": "local",
                                                 "ansible_python_interpreter": sys.executable}}})
    play = [{"hosts": "g1", "gather_facts": False, "tasks": [
        {"name": "Read", "aidc.gpu_cluster.mlx5_info": {}, "vars": {"aidc_run_id": "run-7"}}]}]
    (tmp_path / "play").write_text(yaml.safe_dump(play), encoding="utf-8")
    done = playbook(path / "hosts.yml", str(tmp_path / "play"))
    assert done.returncode == 0, done.stdout + done.stderr
    record = store.load(tmp_path / ".state", "mlx5_info")["g1"]
    assert record["run_id"] == "run-7"
    assert set(record["data"]) == {"devices", "findings", "needs_root", "problems", "stack"}
