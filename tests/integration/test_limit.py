# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Day 2: one host of many, and a host that is down."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests import snapshot
from tests.integration.conftest import Lab, run_lab
from tests.integration.test_site import RAILS, mtu

# Minutes: full listings of hosts, a host that goes and comes.
pytestmark = pytest.mark.slow

# The README's command for one host.
ONE = ("site.yml", "--limit", "gb1", "--skip-tags", "nccl_gate")


def test_limit_touches_nothing_else(configured: Lab) -> None:
    others = ("gb2", "l40s1", "epyc1")
    rail = RAILS["gb200"][0]
    # Drift on the one that is asked for, and on one that is not.
    for host in ("gb1", "gb2"):
        configured.inside(host, "ip", "link", "set", rail, "mtu", "1500")
    before = {host: configured.snapshot(host) for host in others}
    done = configured.play(*ONE, may_meet_nobody=True)
    # The audit is of all, and says that gb1's packets do not reach the one that is wrong.
    assert done.code != 0 and "path-mtu: gb1 rail 0: got 1500 bytes pass unfragmented, wanted 4200" in done.text
    assert list(done.changed()) == ["gb1"] and set(done.stats) <= {"gb1", "localhost"}
    assert mtu(configured, "gb1", rail) == 4200
    for host in others:
        assert snapshot.difference(before[host], configured.snapshot(host)) == []
    # What is planned for a fleet still comes from the inventory: the host has its own address, and the table all hosts.
    address = json.loads(configured.inside("gb1", "ip", "-j", "-4", "address", "show", rail).stdout)[0]["addr_info"]
    assert [entry["local"] for entry in address] == ["10.21.0.2"]
    assert "epyc1 " in done.text
    assert configured.play("playbooks/fabric.yml", "--limit", "gb2").changed() == {"gb2": 1}


@pytest.fixture
def down(configured: Lab) -> Iterator[str]:
    host = "l40s2"
    run_lab("fault", "set", "host-down", host)
    yield host
    run_lab("fault", "clear", "host-down", host)
    deadline = time.monotonic() + 60
    while configured.inside(host, "systemctl", "is-system-running", check=False).stdout.strip() not in (
            "running", "degraded") and time.monotonic() < deadline:
        time.sleep(1)
    assert configured.play("site.yml").code == 0


def test_a_host_that_is_down_is_in_the_report(configured: Lab, down: str) -> None:
    reports = configured.inventory / ".state" / "gate"
    done = configured.play("site.yml")
    assert done.code != 0
    # preflight names it, and it is left out of the rest.
    assert done.stats[down]["failures"] == 1 and f"{down}: host: got unreachable: " in done.text
    left = json.loads((reports / "l40s.json").read_text(encoding="utf-8"))
    assert (left["state"], left["passed"]) == ("INCOMPLETE", False)
    assert down in json.dumps(left)
    # The other pool has its verdict.
    assert json.loads((reports / "gb200.json").read_text(encoding="utf-8"))["passed"] is True
