# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._idle.model import Holder
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import (
    Build,
    Dependant,
    Function,
    Impact,
    Module,
    Node,
    Os,
    Request,
)

CASES = yaml.safe_load(Path(__file__).with_name("golden.yml").read_text(encoding="utf-8"))
KERNEL = "6.8.0-31-generic"


def module(given: list[t.Any] | None) -> Module:
    return Module(*given) if given else Module()


def request(given: dict[str, t.Any]) -> Request:
    packages = given.pop("packages", {"Debian": ["rdma-core", "ethtool"], "RedHat": ["rdma-core", "ethtool"]})
    names = {family: tuple(names) for family, names in packages.items()}
    return Request(packages=names, **{"doca_version": "3.2.1-044000", **given})


def problems(given: list[list[str]]) -> tuple[Problem, ...]:
    return tuple(Problem(what, got, "") for what, got in given)


def function(number: int, given: list[t.Any]) -> Function:
    pci, driver, vfs = (*given, 0)[:3]
    return Function(pci, driver, (f"rail{number}",), (f"mlx5_{number}",), vfs) if driver else Function(pci)


def node(given: dict[str, t.Any]) -> Node:
    given = {"os": {"id": "ubuntu", "family": "Debian"}, "packages": {"rdma-core": "1", "ethtool": "1"},
             "loaded": ["inbox", None, "B"], "installed": {KERNEL: ["inbox", None, "B"]}, "kernels": [KERNEL],
             "functions": [["0000:03:00.0", "mlx5_core"], ["0002:03:00.0", "mlx5_core"]], **given}
    return Node(
        os=Os(**given["os"]), kernel=KERNEL, kernels=tuple(given["kernels"]), packages=given["packages"],
        loaded=module(given["loaded"]), installed={name: module(one) for name, one in given["installed"].items()},
        package=given.get("package"), builds=tuple(Build(*build) for build in given.get("builds", [])),
        dependants=tuple(Dependant(name, (held,)) for name, held in given.get("dependants", [])),
        functions=tuple(function(number, one) for number, one in enumerate(given["functions"])),
        secure_boot=given.get("secure_boot"), key_enrolled=given.get("key_enrolled"),
        has_openibd=given.get("has_openibd", False), problems=problems(given.get("problems", [])))


def short(found: list[Problem]) -> list[str]:
    return [f"{problem.object}: {problem.got}" for problem in found]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_golden_plan(case: dict[str, t.Any]) -> None:
    asked, there, want = request(dict(case.get("request", {}))), node(case.get("node", {})), case["want"]
    given = case.get("impact", {})
    impact = Impact(given.get("uses", {}), tuple(Holder(*words) for words in given.get("holders", [])),
                    problems=problems(given.get("problems", [])))
    assert plan.values(asked) == []
    assert plan.missing(asked, there) == want.get("missing", [])
    assert plan.installs(asked, there) == want.get("install", [])
    assert short(plan.check(asked, there)) == want.get("check", [])
    assert short(plan.findings(asked, there)) == want.get("findings", [])
    reason = plan.restart_reason(there)
    # A driver whose build failed is no reason; the check has stopped the call before.
    assert (reason or "").startswith(want.get("reason", "")) and bool(reason) is ("reason" in want)
    steps = plan.plan(asked, there)
    assert [list(step.command) for step in steps] == want.get("steps", [])
    assert all(step.disruptive == "driver" and step.why == reason for step in steps)
    if steps:
        assert [entry["holder"] for entry in plan.deferred(asked, there, impact)] == want.get("deferred", [])
    summary = plan.summary(asked, there)
    assert summary["restart_required"] is ("reason" in want)
    assert summary["stack"]["wanted"] == {"inbox": "inbox", "doca_ofed": "ofed", "unmanaged": None}[asked.flavour]


@pytest.mark.parametrize("version", [None, "", " ", "latest", "latest-2.9-LTS", "3.2*", "=3.2.1"])
def test_a_version_that_is_none(version: str | None) -> None:
    found = plan.values(Request("doca_ofed", doca_version=version))
    assert [problem.object for problem in found] == ["doca_version"]
    assert "the exact version of doca-ofed" in found[0].wanted
    assert plan.values(Request("inbox", doca_version=version)) == []


def test_a_profile_that_is_none() -> None:
    found = plan.values(Request("doca_ofed", doca_profile="mlnx-ofed-all", doca_version="3.2.1"))
    assert [problem.object for problem in found] == ["doca_profile"]


OFED = {KERNEL: ["ofed", "25.10-1.7.1", "A"]}


@pytest.mark.parametrize(("after", "text"), [
    ({"loaded": ["ofed", "25.10-1.7.1", "A"]}, []),
    ({}, ["mlx5_core: the kernel's own driver loaded"]),
    ({"loaded": ["ofed", "25.10-1.2.8", "Z"]}, ["mlx5_core: that of DOCA-OFED (25.10-1.2.8) loaded"]),
    ({"loaded": ["ofed", "25.10-1.7.1", "A"], "functions": [["0000:03:00.0", "mlx5_core"], ["0002:03:00.0", None]]},
     ["0002:03:00.0: no driver and no netdev and no RDMA device"]),
    ({"loaded": None, "functions": []}, ["0000:03:00.0: no driver and no netdev and no RDMA device",
                                         "0002:03:00.0: no driver and no netdev and no RDMA device",
                                         "mlx5_core: no driver loaded"]),
])
def test_read_back(after: dict[str, t.Any], text: list[str]) -> None:
    assert short(plan.verify(node({"installed": OFED}), node({"installed": OFED, **after}))) == text


def test_read_back_where_nothing_was_bound_before() -> None:
    before = node({"installed": OFED, "loaded": None, "functions": [["0000:03:00.0", None]]})
    loaded = ["ofed", "25.10-1.7.1", "A"]
    assert plan.verify(before, node({"installed": OFED, "loaded": loaded})) == []
    still = node({"installed": OFED, "loaded": loaded, "functions": [["0000:03:00.0", None]]})
    assert short(plan.verify(before, still)) == ["mlx5_core: no device bound to it"]
    assert plan.predict(before).loaded == before.on_disk()
