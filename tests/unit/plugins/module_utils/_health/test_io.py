# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs from the intent, as checks; the boot tool's answer is given, its own tests make it."""
from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot import io as boot_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._boot.model import Drift, Round
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._health.model import (
    CHECKS,
    DRIFT_CHECKS,
    Options,
    Result,
)
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._intent.model import Intent

from tests.unit.plugins.fake import FakeNode

PORT = {"pci": "0000:03:00.0"}
SECTIONS: dict[str, t.Any] = {"rail_network": {"rails": [PORT]}, "mlx5_port": {"ports": [PORT]},
                              "roce_qos": {"ports": [PORT]}, "roce_gid": {"ports": [PORT]}}


def made(node: FakeNode, names: t.Sequence[str], *drift: Drift, sections: dict[str, t.Any] | None = None,
         monkeypatch: pytest.MonkeyPatch) -> dict[str, Result]:
    node.put("/etc/aidc/intent.json", json.dumps({
        "schema_version": 1, "run_id": None, "time": "2026-01-02T03:04:05Z",
        "sections": SECTIONS if sections is None else sections}))
    monkeypatch.setattr(boot_io, "one_round", lambda *arguments: Round(drift=drift))
    results: list[Result] = []
    io.make(node.machine(), Options(), names, lambda names: None, results.append)
    return {result.check: result for result in results}


@pytest.mark.parametrize(("section", "what", "check"), [
    ("rail_network", "0000:03:00.0 (rail0): got the link is down, wanted what networkd was told", "addresses"),
    ("rail_network", "0000:03:00.0 (rail0): got MTU is 1500, wanted what networkd was told", "mtu"),
    ("mlx5_port", "pause_rx is True", "mtu"), ("roce_qos", "pfc is []", "qos"),
    ("roce_gid", "0000:03:00.0 (rail0): no GID that fits", "gid")])
def test_each_difference_is_one_check(node: FakeNode, monkeypatch: pytest.MonkeyPatch, section: str, what: str,
                                      check: str) -> None:
    drift = Drift(section, f"{what} (read back after all steps; look at its log)")
    found = made(node, DRIFT_CHECKS, drift, monkeypatch=monkeypatch)
    assert found[check] == Result(check, False, what)
    assert all(found[name].ok for name in DRIFT_CHECKS if name != check)


def test_a_section_that_is_not_there_is_not_checked(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(node, DRIFT_CHECKS, sections={"roce_gid": SECTIONS["roce_gid"]}, monkeypatch=monkeypatch)
    assert {name: found[name].ok for name in DRIFT_CHECKS} == {"addresses": None, "mtu": None, "qos": None, "gid": True}
    assert [name for name in DRIFT_CHECKS if not found[name].applies] == ["addresses", "mtu", "qos"]


def test_ports_of_the_boot_tool_are_ours_already(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(node, CHECKS[3:], Drift("ports", "0000:03:00.0: it has no RDMA device"), monkeypatch=monkeypatch)
    assert all(result.ok for result in found.values())


def test_each_tool_is_asked_once(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.put("/etc/aidc/intent.json", Intent(SECTIONS, None, "2026-01-02T03:04:05Z").text())

    def one_round(machine: Machine, *arguments: t.Any) -> Round:
        for _section in range(2):
            machine.tool("ip", "-d", "-j", "addr", "show")
        return Round()

    monkeypatch.setattr(boot_io, "one_round", one_round)
    io.make(node.machine(), Options(), DRIFT_CHECKS, lambda names: None, lambda result: None)
    assert len(node.calls) == 1
