# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import rendering


class Hostvars(dict[str, dict[str, t.Any]]):
    """What is used of the engine's hostvars."""

    def raw_get(self, host: str) -> dict[str, t.Any]:
        return self[host]


def host(name: str, index: int, **more: t.Any) -> dict[str, t.Any]:
    rails = [{"rail": 0, "pci": "0000:41:00.0"}]
    return {"inventory_hostname": name, "mlx5_port_rails": rails, "rail_network_rails": rails,
            "rail_network_subnets": ["192.0.2.0/24"], "rail_network_node_index": index,
            "groups": {"l40s": ["h1", "h2"]}, "nccl_gate_pool": "", "nccl_gate_gpus_per_host": 4, **more}


def fleet(**more: t.Any) -> rendering.Fleet:
    hostvars = Hostvars({name: host(name, index, **more) for index, name in enumerate(("h1", "h2"), 1)})
    return rendering.Fleet(hostvars, list(hostvars), "networkd", DataLoader())


def test_hosts() -> None:
    made = fleet()
    files = made.files()
    assert made.problems == []
    assert sorted(files) == [
        *(f"hosts/h{number}/{name}" for number in (1, 2) for name in (
            "files/etc/sysctl.d/90-aidc-rails.conf", "files/etc/systemd/network/05-aidc-rail0.network",
            "files/etc/systemd/system/aidc-fabric.service", "files/etc/systemd/system/aidc-fabric@.service",
            "files/etc/udev/rules.d/90-aidc-fabric.rules", "settings.yml"))]
    assert "Address=192.0.2.2/24" in files["hosts/h2/files/etc/systemd/network/05-aidc-rail0.network"]
    assert fleet().files() == files, "deterministic"


# A pool with a run needs the engine to find our filters: tests/unit/playbooks/test_prod.py has it.
def test_a_pool_that_is_not_tested() -> None:
    run = yaml.safe_load(fleet(nccl_gate_pool="l40s", nccl_gate_gpus_per_host=0).files()["pools/l40s/run.yml"])
    assert run == {"hosts": ["h1", "h2"], "not_tested": "no GPU; perftest comes later"}


def test_a_role_that_is_off_renders_nothing() -> None:
    files = fleet(rail_network_mode=False, roce_qos_mode="off", fabric_boot_mode="off").files()
    assert set(yaml.safe_load(files["hosts/h1/settings.yml"])) == {"mlx5_port", "roce_gid"}
    assert not any("files" in name for name in files)


def test_repositories_of_the_site() -> None:
    sources = {"apt": {"proxy": "http://192.0.2.8:3142", "repositories": [
        {"name": "site", "uris": ["http://mirror.example.com/ubuntu"], "key": "KEY\n\nEND"}]}}
    files = fleet(aidc_sources=sources).files()
    text = files["hosts/h1/files/etc/apt/sources.list.d/aidc.sources"]
    assert "URIs: http://mirror.example.com/ubuntu\nSuites: <release>\n" in text
    assert text.endswith("Signed-By:\n KEY\n .\n END\n")
    assert "Proxy" in files["hosts/h1/files/etc/apt/apt.conf.d/90aidc-sources"]


@pytest.mark.parametrize(("values", "text"), [
    ({"rail_network_node_index": 300}, "rail_network_node_index: got 300"),
    ({"rail_network_rails": []}, "h1: rail_network: rail_network_rails: got none, wanted one entry per rail"),
    ({"roce_qos_dscp": 64}, "h1: roce_qos: dscp of 0000:41:00.0: got 64"),
    ({"nccl_gate_pool": "l40s", "nccl_gate_members": ["h1", "x"]},
     "pool l40s: got the hosts h1, x, wanted hosts of the node classes"),
])
def test_what_cannot_be_rendered_is_a_problem(values: dict[str, t.Any], text: str) -> None:
    made = fleet(**values)
    made.files()
    assert any(text in problem for problem in made.problems), made.problems


def test_the_folder(tmp_path: Path) -> None:
    folder, files = tmp_path / "out", {"hosts/a/x": "1\n", "hosts/b/y": "2\n"}
    different, gone = rendering.compare(folder, files)
    assert (different, gone) == (["hosts/a/x", "hosts/b/y", "manifest.sha256"], [])
    rendering.store(folder, files, different, gone)
    (folder / "own").write_text("kept", encoding="utf-8")
    assert rendering.compare(folder, files) == ([], [])
    line = (folder / "manifest.sha256").read_text(encoding="utf-8").splitlines()[0]
    assert line == hashlib.sha256(b"1\n").hexdigest() + "  hosts/a/x"
    assert (folder / "hosts/a/x").stat().st_mode & 0o777 == 0o600
    # A host less: its files go, its folder too, and nobody else's.
    del files["hosts/b/y"]
    different, gone = rendering.compare(folder, files)
    assert (different, gone) == (["manifest.sha256"], ["hosts/b/y"])
    rendering.store(folder, files, different, gone)
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "hosts", "manifest.sha256", "own", "x"]


def test_a_manifest_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "manifest.sha256").write_text("0  ../x\n0  /etc/passwd\n0  a/../../x\n0  good\n", encoding="utf-8")
    assert rendering.compare(tmp_path, {})[1] == ["good"]
