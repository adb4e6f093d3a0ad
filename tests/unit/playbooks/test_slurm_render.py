# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""render.yml with the groups of Slurm: hosts of inventories/prod, controllers, and facts of theirs."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import check, config_parse, hostlist

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(__file__).with_name("golden_slurm")
BIN = Path(sys.executable).parent
GROUPS = """\
all:
  children:
    slurm_controller: {hosts: {ctl-01: {}, ctl-02: {}}}
    slurm_dbd: {hosts: {ctl-01: {}}}
    slurm_compute: {children: {gb200: {}, l40s: {}, epyc9754: {}}}
"""
ALL = """\
slurm_cluster_name: ai1
slurm_version: "24.11.5"
slurm_partitions:
  - {name: train, groups: [gb200], default: true, max_time: 7-00:00:00}
  - {name: infer, groups: [l40s]}
  - {name: cpu, groups: [epyc9754]}
slurm_mem_spec_limit_mib: 8192
slurm_reboot_program: /usr/sbin/reboot
slurm_state_dir: /var/lib/slurm/slurmctld
# What the role slurm adds by itself is not looked at here.
slurm_health: false
slurm_nccl_profile: false
slurm_options: {MpiDefault: "{{ 'pmi' ~ 2 }}"}
"""
CLASSES = {
    "gb200": "slurm_node: {sockets: 2, cores_per_socket: 72, threads_per_core: 1, memory_mib: 981000,\n"
             "             cores: [0-71, 0-71, 72-143, 72-143]}\n",
    "l40s": "slurm_node: {sockets: 2, cores_per_socket: 32, threads_per_core: 2, memory_mib: 515000,\n"
            "             cores: [0-31, 0-31, 32-63, 32-63]}\n",
    "epyc9754": "slurm_node: {sockets: 1, cores_per_socket: 128, threads_per_core: 2, memory_mib: 772300}\n",
}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in ("classes", "common", "prod"):
        shutil.copytree(ROOT / "inventories" / name, folder / name, symlinks=True,
                        ignore=shutil.ignore_patterns(".rendered", ".state"))
    prod = folder / "prod"
    data = yaml.safe_load((prod / "hosts.yml").read_text(encoding="utf-8"))
    groups = data["all"]["children"]
    data["all"]["children"] = {name: group for name, group in groups.items() if not name.startswith("slurm_")}
    # The first two of each leaf: what takes its time is not ours.
    for group in groups.values():
        if "hosts" in group:
            group["hosts"] = dict(list(group["hosts"].items())[:2])
    (prod / "hosts.yml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    (prod / "slurm.yml").write_text(GROUPS, encoding="utf-8")
    (prod / "group_vars/all/80-slurm.yml").write_text(ALL, encoding="utf-8")
    for name, text in CLASSES.items():
        (prod / "group_vars" / name / "80-slurm.yml").write_text(text, encoding="utf-8")
    return prod


def render(inventory: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                   "LC_ALL": "C.UTF-8",
                   # Another order of sets in each run, as is usual.
                   "PYTHONHASHSEED": str(len(arguments))}
    return subprocess.run(
        [str(BIN / "ansible-playbook"), "-i", str(inventory), "playbooks/render.yml", "-e", f"aidc_render_dir={folder}",
         *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
        stdin=subprocess.DEVNULL)


def test_the_cluster_of_the_fleet(inventory: Path, tmp_path: Path) -> None:
    """After a wanted change: render, and copy cluster/ into golden_slurm/. A limit leaves nobody out."""
    done = render(inventory, tmp_path / "out", "--limit", "epyc-02")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {str(path.relative_to(tmp_path / "out/cluster")): path.read_text(encoding="utf-8")
             for path in (tmp_path / "out/cluster").rglob("*") if path.is_file()}
    golden = {str(path.relative_to(GOLDEN)): path.read_text(encoding="utf-8")
              for path in GOLDEN.rglob("*") if path.is_file()}
    assert found == golden
    files = {name.rpartition("/")[2]: text for name, text in golden.items() if name.endswith(".conf")}
    assert check.texts(files) == []
    nodes = [name for line in config_parse.lines(files["slurm.conf"])
             for name in hostlist.expand(line.get("nodename") or "")]
    assert len(nodes) == 8 and "MpiDefault=pmi2\n" in files["slurm.conf"]


def test_what_only_the_hosts_know_is_told_and_stops_nothing(inventory: Path, tmp_path: Path) -> None:
    done = render(inventory, tmp_path / "out", "-e", "slurm_version=", "-e", '{"slurm_node": {}}')
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in (tmp_path / "out/cluster").rglob("*")] == ["findings.yml"]
    found = yaml.safe_load((tmp_path / "out/cluster/findings.yml").read_text(encoding="utf-8"))
    assert {finding["object"] for finding in found if finding["severity"] == "error"} == {
        "slurm_version", "gb1-[01-02],gb2-[01-02],l40s-[01-02],epyc-[01-02]: facts for NodeName"}


def test_an_unsound_description_is_refused(inventory: Path, tmp_path: Path) -> None:
    done = render(inventory, tmp_path / "out", "-e", "slurm_block_size=20", "-e", "slurm_cluster_name=Über")
    assert done.returncode == 2
    text = " ".join(done.stdout.split())
    assert "slurm: nvlink_domain nvl1: got 2 nodes, wanted slurm_block_size (20) or more" in text
    assert "slurm: slurm_cluster_name: got Über" in text and not (tmp_path / "out").exists()
