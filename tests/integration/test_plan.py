# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/plan.yml: the table and the JSON name what a run would do, and the run does that."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Lab
from tests.integration.test_site import RAILS, mtu

HOSTS = ("gb1", "l40s1")


def plan(lab: Lab, file: Path, *argv: str) -> tuple[str, dict[str, Any]]:
    done = lab.play("playbooks/plan.yml", "--check", "-e", f"aidc_plan_file={file}", "--limit",
                    ",".join((*HOSTS, "localhost")), *argv)
    assert done.code == 0, done.text[-4000:]
    assert file.stat().st_mode & 0o777 == 0o600
    return done.text, json.loads(file.read_text(encoding="utf-8"))["hosts"]


@pytest.mark.slow  # the whole site in check mode, as the next one
def test_nothing_to_do_on_configured_hosts(configured: Lab, tmp_path: Path) -> None:
    text, hosts = plan(configured, tmp_path / "plan.json")
    assert hosts == {host: {"unreachable": None, "roles": {}} for host in HOSTS}
    assert "gb1,l40s1: nothing to do" in text
    assert "2 hosts, 0 with changes" in text


@pytest.mark.slow
def test_the_plan_names_host_role_and_disruption_and_the_run_does_it(configured: Lab, tmp_path: Path) -> None:
    rail = RAILS["l40s"][0]
    configured.inside("l40s1", "ip", "link", "set", rail, "mtu", "1500")
    text, hosts = plan(configured, tmp_path / "plan.json")
    assert hosts["gb1"]["roles"] == {}
    cell = hosts["l40s1"]["roles"]["rail_network"]
    assert cell["disruptive"].get("link", 0) >= 1 and cell["changes"] == len(cell["commands"])
    # What mlx5_port would verify depends on a step that was only planned, and it says so.
    assert hosts["l40s1"]["roles"]["mlx5_port"]["unpredictable"] == [
        "unpredictable until role rail_network has set their MTU"]
    assert set(hosts["l40s1"]["roles"]) == {"rail_network", "mlx5_port"}
    assert any(line.split()[:2] == ["l40s1", "rail_network"] and " link " in line for line in text.splitlines())
    assert mtu(configured, "l40s1", rail) == 1500
    done = configured.play("playbooks/fabric.yml", "--limit", ",".join(HOSTS))
    assert done.code == 0, done.text[-4000:]
    assert done.results("aidc.gpu_cluster.rail_network")["l40s1"]["commands"] == cell["commands"]
    assert list(done.changed()) == ["l40s1"]
    assert mtu(configured, "l40s1", rail) == 4200


def test_without_check_mode_it_refuses_before_anything_else(configured: Lab, tmp_path: Path) -> None:
    done = configured.play("playbooks/plan.yml", "--limit", "gb1", "-e", f"aidc_plan_file={tmp_path / 'x.json'}")
    assert done.code != 0
    assert "wanted a run in check mode; add --check. Nothing was changed." in done.text
    assert len(done.tasks) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_host_that_is_down_is_in_the_plan(configured: Lab, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = configured.play("playbooks/plan.yml", "--check", "-e", f"aidc_plan_file={file}",
                           "-e", '{"ansible_port": 9}', "--limit", "gb1,localhost")
    assert done.code != 0
    hosts = json.loads(file.read_text(encoding="utf-8"))["hosts"]
    assert hosts["gb1"]["unreachable"] and "gb1: unreachable: " in done.text
