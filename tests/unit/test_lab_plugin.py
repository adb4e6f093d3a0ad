# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the tests: a group, a play or a run without hosts fails them. No lab is started."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.instance import Instance
from tests import lab_plugin
from tests.lab_plugin import ROOT, Lab, Labs, Play, read_play, some_hosts

PLAY = """
- name: First
  hosts: gb200
  gather_facts: false
  tasks: [{name: Nothing, ansible.builtin.debug: {msg: here}}]
"""


def lab_with(folder: Path, hosts: dict[str, list[str]]) -> Lab:
    """An inventory as `lab up` writes it, whose hosts are this machine."""
    children: dict[str, Any] = {group: {"hosts": {name: {} for name in names}} for group, names in hosts.items()}
    data = {"all": {"vars": {"ansible_connection": "local"}, "children": children}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(data), encoding="utf-8")
    return Lab(Instance("none"), folder)


def play_file(folder: Path, text: str = PLAY) -> str:
    file = folder / ".play"  # hidden: the folder is an inventory
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_some_hosts() -> None:
    assert some_hosts(["b", "a"], "x") == ["a", "b"]
    with pytest.raises(AssertionError, match="x: got no hosts, wanted at least one"):
        some_hosts([], "x")


def test_hosts_of_a_group(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, {"gb200": ["g1", "g2"], "l40s": ["l1"], "epyc9754": []})
    assert lab.hosts() == ["g1", "g2", "l1"]
    assert lab.hosts("gb200") == ["g1", "g2"]
    for group in ("epyc9754", "no_such_group"):
        with pytest.raises(AssertionError, match=f"group {group}: got no hosts"):
            lab.hosts(group)
    with pytest.raises(AssertionError, match="group all: got no hosts"):
        lab_with(tmp_path, {}).hosts()


def test_a_play_that_meets_its_hosts(tmp_path: Path) -> None:
    done = lab_with(tmp_path, {"gb200": ["g1", "g2"]}).play(play_file(tmp_path))
    assert (done.code, done.hosts(), done.idle) == (0, ["g1", "g2"], [])


def test_a_play_that_meets_nobody_fails(tmp_path: Path) -> None:
    # Ansible itself: exit status 0, "skipping: no hosts matched".
    lab, file = lab_with(tmp_path, {"gb200": [], "l40s": ["l1"]}), play_file(tmp_path)
    with pytest.raises(AssertionError, match="got no hosts, wanted at least one"):
        lab.play(file)
    asked = lab.play(file, may_meet_nobody=True)
    assert (asked.code, asked.stats, asked.idle) == (0, {}, ["First"])
    with pytest.raises(AssertionError, match="the run of ansible-playbook: got no hosts"):
        asked.hosts()


def test_one_of_two_plays_that_meets_nobody_fails(tmp_path: Path) -> None:
    second = PLAY.replace("First", "Second").replace("gb200", "l40s")
    lab = lab_with(tmp_path, {"gb200": ["g1"], "l40s": []})
    with pytest.raises(AssertionError, match="got plays that met no host: Second"):
        lab.play(play_file(tmp_path, PLAY + second))


def test_the_controller_alone_is_no_host(tmp_path: Path) -> None:
    done = lab_with(tmp_path, {"gb200": ["g1"]}).play(play_file(tmp_path, PLAY.replace("gb200", "localhost")))
    assert done.code == 0
    with pytest.raises(AssertionError, match="got no hosts"):
        done.hosts()


def test_an_output_that_cannot_be_read_is_no_success() -> None:
    with pytest.raises(AssertionError, match="got no hosts"):
        read_play(0, "no JSON", "").check_hosts()
    read_play(2, "", "ERROR! the playbook could not be found").check_hosts()
    Play(0, "", [], {"a": {"changed": 0}}).check_hosts()


def test_a_failed_up_is_removed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fake(*argv: str, name: str) -> None:
        calls.append((argv[0], name))
        assert argv[0] == "down", "up: no"

    monkeypatch.setattr(lab_plugin, "run_lab", fake)
    labs = Labs(tmp_path)
    with pytest.raises(AssertionError, match="up: no"):
        labs("mone")
    labs.close()
    assert calls == [("down", "mone"), ("up", "mone"), ("down", "mone")]


INNER = """
from tests.lab_plugin import Lab, labs, some_hosts
from lab.instance import Instance
from pathlib import Path

def test_rails_of_every_host():
    for host in Lab(Instance("none"), Path({folder!r})).hosts("gb200"):
        assert host == "g1"
"""


@pytest.mark.parametrize(("hosts", "code", "text"), [
    ({"gb200": ["g1"]}, 0, "1 passed"),
    ({"gb200": []}, 1, "group gb200: got no hosts, wanted at least one"),
    ({}, 1, "group gb200: got no hosts, wanted at least one"),
])
def test_a_scenario_with_no_hosts_makes_its_tests_fail(
        tmp_path: Path, hosts: dict[str, list[str]], code: int, text: str) -> None:
    """A test that only loops over hosts would pass over none; run as its own pytest."""
    lab_with(tmp_path, hosts)
    file = tmp_path / "test_inner.py"
    file.write_text(INNER.format(folder=str(tmp_path)), encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path),
                           "-c", str(ROOT / "pyproject.toml"), str(file)], cwd=ROOT, capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert text in done.stdout
