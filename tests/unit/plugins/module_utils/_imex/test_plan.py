# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of states that the rows of test_rows.py do not reach."""
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Holder, Package
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import (
    CHANNELS,
    CONFIG_FILE,
    NODES_FILE,
    File,
    Node,
    Request,
    Unit,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import Use

REQUEST = Request("d", ("192.0.2.1", "192.0.2.2"))
KEYS = "".join(f"{key}={value}\n" for key, value in REQUEST.keys.items())
NODE = Node(Unit("loaded", "active", "enabled", 100), File(REQUEST.nodes_text, 90), File(KEYS, 100, 0o600),
            frozenset(("192.0.2.1",)), "580.126.09", (Package("nvidia-imex", "580.126.09"),))


def unit(**values: t.Any) -> Node:
    return dataclasses.replace(NODE, unit=dataclasses.replace(NODE.unit, **values))


def commands(request: Request, node: Node) -> list[str]:
    return [" ".join(step.command).replace(" nvidia-imex.service", "") for step in plan.steps(request, node)]


def test_nothing_to_do() -> None:
    assert (plan.steps(REQUEST, NODE), plan.waits(REQUEST, NODE), plan.check(REQUEST, NODE)) == ([], [], [])


@pytest.mark.parametrize(("values", "expected"), [
    ({"enabled": "disabled"}, ["systemctl enable"]), ({"enabled": "enabled-runtime"}, ["systemctl enable"]),
    ({"active": "failed"}, ["systemctl start"]),
    ({"active": "inactive", "load": "masked", "enabled": "masked-runtime"},
     ["systemctl unmask --runtime", "systemctl enable", "systemctl start"])])
def test_the_unit(values: dict[str, t.Any], expected: list[str]) -> None:
    assert commands(REQUEST, unit(**values)) == expected


@pytest.mark.parametrize(("values", "expected"), [
    ({"load": "masked", "active": "inactive", "enabled": "masked"}, []),
    ({"load": "masked", "active": "active", "enabled": "masked"}, ["systemctl stop"]),
    ({"load": "not-found", "active": "inactive", "enabled": ""}, ["systemctl mask"]),
    ({"enabled": "enabled-runtime"}, ["systemctl stop", "systemctl disable", "systemctl mask"])])
def test_dra(values: dict[str, t.Any], expected: list[str]) -> None:
    assert commands(Request(owner="dra"), unit(**values)) == expected
    assert plan.waits(Request(owner="dra"), unit(**values)) == []
    for state in ("stopped", "resumed", "ready"):
        assert commands(Request(owner="dra", state=t.cast("t.Any", state)), unit(**values)) == []


def test_a_file_of_the_second_of_the_start_is_not_newer() -> None:
    for second in (100, 101):
        assert plan.stale(REQUEST, dataclasses.replace(NODE, config_file=File(KEYS, second))) == []
    late = dataclasses.replace(NODE, config_file=File(KEYS, 102))
    assert plan.stale(REQUEST, late) == [f"{CONFIG_FILE} was changed after the daemon's start"]
    assert plan.stale(REQUEST, dataclasses.replace(late, unit=Unit("loaded", "inactive"))) == []


def test_the_mode_of_config_stays() -> None:
    node = dataclasses.replace(unit(active="inactive"), nodes_file=File(), config_file=File("A=1\n", 1, 0o600))
    steps = plan.steps(dataclasses.replace(REQUEST, may_join=True), node)
    assert [(step.command[1], step.mode) for step in steps[:2]] == [(NODES_FILE, 0o644), (CONFIG_FILE, 0o600)]
    assert steps[1].why == ("IMEX_NODE_CONFIG_FILE is not set, wanted /etc/nvidia-imex/nodes_config.cfg; "
                            "IMEX_CMD_ENABLED is not set, wanted 1")


def test_a_key_that_stands_twice() -> None:
    node = dataclasses.replace(NODE, config_file=File("IMEX_CMD_ENABLED=0\n" + KEYS, 1))
    assert plan.differences(REQUEST, node) == [f"{CONFIG_FILE} sets a key twice"]


def test_a_half_configured_package() -> None:
    package = Package("nvidia-imex-570", "570.1", "half-configured")
    node = dataclasses.replace(unit(active="inactive"), packages=(package,))
    assert [one.got for one in plan.check(REQUEST, node)] == ["half-configured"]
    for state in ("stopped", "resumed", "ready"):
        assert plan.check(dataclasses.replace(REQUEST, state=t.cast("t.Any", state)), node) == []


def test_what_could_not_be_read_refuses_always() -> None:
    bad = (Problem("systemctl", "x", "y"),)
    for request in (REQUEST, Request(owner="dra"), dataclasses.replace(REQUEST, state="stopped")):
        assert plan.check(request, dataclasses.replace(NODE, problems=bad)) == list(bad)


def test_who_could_not_be_seen_is_not_idle() -> None:
    assert [one["why"] for one in plan.busy(REQUEST, Use(unseen=3))] == ["could not be looked at; run as root"]
    assert plan.busy(REQUEST, Use()) == []
    holder = Holder(7, "x", None, ("/dev/nvidia0", f"{CHANNELS}/channel3"), False)
    assert plan.busy(REQUEST, Use((holder,))) == [{"holder": "pid 7 x", "why": f"has {CHANNELS}/channel3 open"}]
