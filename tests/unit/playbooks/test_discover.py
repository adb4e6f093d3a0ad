# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/discover.yml and the role preflight on this machine, which is of no class, and on one that is not there."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.unit.plugins.module_utils._discover.case import FOLDER

ROOT = Path(__file__).resolve().parents[3]
PREFLIGHT = "- hosts: all\n  gather_facts: false\n  roles: [aidc.gpu_cluster.preflight]\n"
LATER = "- hosts: all\n  gather_facts: false\n  tasks: [{ansible.builtin.debug: {msg: went on}}]\n"


def play(tmp_path: Path, book: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    hosts = {"here": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
             "down": {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}}
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    return subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), book, *arguments], cwd=ROOT,
        env=environment, capture_output=True, text=True, timeout=120, check=False)


def words(text: str) -> str:
    return " ".join(text.split())


def discover(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return play(tmp_path, "playbooks/discover.yml", "-e", f"aidc_discover_dir={tmp_path}/out",
                "-e", f"aidc_discover_classes_dir={FOLDER}", *arguments)


def test_discover(tmp_path: Path) -> None:
    done = discover(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    out = words(done.stdout)
    assert "down no answer" in out and "unreachable: " in out
    assert "2 files written" in out
    data = yaml.safe_load((tmp_path / "out/hosts.yml").read_text(encoding="utf-8"))
    assert set(data["all"]["children"]["unknown"]["hosts"]) == {"here", "down"}
    (tmp_path / "out/hosts.yml").write_text("mine: {}\n", encoding="utf-8")
    again = discover(tmp_path)
    assert again.returncode == 2
    assert "got other files with these names" in words(again.stdout)
    assert (tmp_path / "out/hosts.yml").read_text(encoding="utf-8") == "mine: {}\n"
    forced = discover(tmp_path, "-e", "aidc_discover_force=true")
    assert forced.returncode == 0, forced.stdout


def test_discover_with_a_limit_and_in_check_mode(tmp_path: Path) -> None:
    done = discover(tmp_path, "--limit", "here", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "down no answer" not in words(done.stdout) and not (tmp_path / "out").exists()


def test_without_class_files(tmp_path: Path) -> None:
    done = discover(tmp_path, "-e", "aidc_discover_classes_dir=/nonexistent")
    assert done.returncode == 2
    assert "got no class file in /nonexistent, wanted one file for each node class" in words(done.stdout)


def test_preflight_names_every_finding_of_every_host_in_one_message(tmp_path: Path) -> None:
    book = tmp_path / "play.yml"
    book.write_text(PREFLIGHT + LATER, encoding="utf-8")
    values = {"preflight_disks": [{"path": "/", "free_gib": 1000000}], "preflight_supported_os": ["plan9 4"],
              "ansible_become_method": "su"}
    done = play(tmp_path, str(book), "-e", json.dumps(values))
    out = words(done.stdout)
    assert done.returncode == 2
    assert "on 2 hosts" in out
    assert "here: operating system: got " in out and "wanted plan9 4" in out
    assert "here: free space of /: got " in out
    assert "here: hostname: got " in out
    assert "down: host: got unreachable: " in out
    assert done.stdout.count("FAILED!") == 2 and "went on" not in out, "an unfit host goes no further"


def test_preflight_off(tmp_path: Path) -> None:
    book = tmp_path / "play.yml"
    book.write_text(PREFLIGHT, encoding="utf-8")
    done = play(tmp_path, str(book), "-e", "preflight_mode=off")
    assert done.returncode == 0, done.stdout
    assert "unreachable=0" in done.stdout
