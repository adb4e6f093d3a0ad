# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role as a play runs it, on this machine without an NVIDIA GPU, and with answers of the module that are given."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "nvidia_driver"
PLAY = [{"hosts": "all", "gather_facts": False, "roles": ["aidc.gpu_cluster.nvidia_driver"]}]
# In place of the action plugin: what the module would answer comes from a variable.
STUB = """from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        return {**task_vars["answer"], "invocation": {"module_args": dict(self._task.args)}}
"""
CLEAN = {"changed": False, "managed": True, "gpus": ["0000:41:00.0"], "install": [], "missing_packages": [],
         "manager": "apt", "commands": [], "findings": [], "reboot_reasons": [], "reboot_allowed": True}


@pytest.fixture
def run(tmp_path: Path) -> t.Callable[..., tuple[int, str]]:
    def call(answer: dict[str, t.Any] | None = None, *arguments: str, **variables: t.Any) -> tuple[int, str]:
        home = ROOT / ".collections"
        if answer is not None:
            home = tmp_path / "collections"
            target = home / "ansible_collections" / "aidc" / "gpu_cluster"
            (target / "plugins" / "action").mkdir(parents=True, exist_ok=True)
            (target / "plugins" / "action" / "nvidia_driver.py").write_text(STUB, encoding="utf-8")
            for name in ("roles", "galaxy.yml", "meta"):
                if not (target / name).exists():
                    (target / name).symlink_to(ROOT / name)
        (tmp_path / "play.yml").write_text(yaml.safe_dump(PLAY), encoding="utf-8")
        given = {"ansible_connection": "local", "ansible_become": False, "answer": answer,
                 "ansible_python_interpreter": sys.executable, "nvidia_driver_version": "580.159.04", **variables}
        hosts = yaml.safe_dump({"all": {"hosts": {"h1": given}}}, sort_keys=False)
        (tmp_path / "hosts.yml").write_text(hosts, encoding="utf-8")
        done = subprocess.run(
            [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(tmp_path / "hosts.yml"),
             str(tmp_path / "play.yml"), *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
                 "ANSIBLE_COLLECTIONS_PATH": str(home)})
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return call


def test_every_variable_that_tasks_use_is_defined() -> None:
    known: set[str] = set()
    for name in ("defaults/main.yml", "vars/main.yml"):
        known |= set(yaml.safe_load((ROLE / name).read_text(encoding="utf-8")))
    text = "".join(path.read_text(encoding="utf-8") for path in [*ROLE.glob("tasks/*.yml"), ROLE / "vars/main.yml"])
    known |= set(re.findall(r"register: (\w+)", text)) | {"nvidia_driver_result"}
    used = set(re.findall(r"\b(?:__)?nvidia_driver_[a-z]\w*", text))
    assert used - known - {f"nvidia_driver_{phase}" for phase in ("preflight", "install", "verify")} == set()


def test_a_machine_without_a_gpu_is_left_alone(run: t.Callable[..., tuple[int, str]]) -> None:
    """With the real module."""
    if any(path.read_text().strip() == "0x10de" for path in Path("/sys/bus/pci/devices").glob("*/vendor")):
        pytest.skip("this machine has a device of NVIDIA")
    code, said = run(None, "--check")
    assert code == 0, said
    assert "changed=0" in said and "failed=0" in said


@pytest.mark.parametrize("version", ["580", "latest", ""])
def test_a_version_that_moves(run: t.Callable[..., tuple[int, str]], version: str) -> None:
    code, said = run(CLEAN, nvidia_driver_version=version)
    assert code == 2
    assert f"nvidia_driver_version: got {version or 'none'}, wanted a full version" in said


def test_a_settled_node(run: t.Callable[..., tuple[int, str]]) -> None:
    for mode in ("apply", "verify", "off"):
        code, said = run(CLEAN, nvidia_driver_mode=mode)
        assert code == 0 and "changed=0" in said, said
    assert run(CLEAN, nvidia_driver_manage=False, nvidia_driver_version="")[0] == 0


def test_a_pending_reboot_is_told_and_no_failure(run: t.Callable[..., tuple[int, str]]) -> None:
    pending = {**CLEAN, "reboot_reasons": ["580.126.09 is loaded; not reloaded: pid 7 a has /dev/nvidia0 open"],
               "reboot_allowed": False, "findings": [{"object": "o", "got": "g", "wanted": "w", "hint": "h"}]}
    code, said = run(pending)
    assert code == 0 and "changed=0" in said
    assert "h1: reboot required: 580.126.09 is loaded" in said and "h1: o / g / w / h" in said
    assert "do not reboot: the next boot would come up without the driver" in said


def test_verify_fails_where_something_would_be_done(run: t.Callable[..., tuple[int, str]]) -> None:
    code, said = run({**CLEAN, "commands": [["apt-mark", "hold", "x"]]}, nvidia_driver_mode="verify")
    assert code == 2 and "h1: would run apt-mark hold x" in said and "changed=0" in said
