# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.nccl_gate_report import REGISTERED, ActionModule, facts_of
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.model import Node
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.plan import Planner
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.search import Setting, rules_of
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.searching import Searching

from tests.unit.plugins.module_utils._gate.launched import HCAS, LIMIT, Hosts

VERDICT = {"state": "PASS", "label": "PASS (SIMULATED)", "reason": "good", "ratio": 0.98, "simulated": True}


def variables(name: str, pool: str = "l40s") -> dict[str, t.Any]:
    """What a host has registered after a good run; ``a`` is the head."""
    rails: dict[str, t.Any] = {"rails": [], "problems": []}
    member = {"pool": pool, "members": ["a", "b"], "not_tested": "", "lab": True, **rails}
    found: dict[str, t.Any] = {
        "nccl_gate_pool": pool,
        "__nccl_gate_member": member,
        "__nccl_gate_access": {"host_keys": ["k"]},
        "__nccl_gate_paths": {"paths": [], "too_small": 0},
        "__nccl_gate_cleanup": {"left": []},
        "__nccl_gate_made": {"skipped": True, "changed": False},
        "__nccl_gate_test": {"skipped": True},
    }
    if name == "a":
        found["__nccl_gate_made"] = {"public_key": "k", "run_id": "l40s-1"}
        found["__nccl_gate_test"] = {"verdict": VERDICT, "result": {"peak_busbw_gbps": 49.0}, "log": "the log"}
    return found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> t.Callable[..., t.Any]:
    monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})

    def call(hostvars: dict[str, t.Any], check_mode: bool = False, **options: t.Any) -> t.Any:
        action: t.Any = object.__new__(ActionModule)
        args = {
            "hosts": list(hostvars),
            "report_dir": str(tmp_path / "gate"),
            "mode": "apply",
            "max_age_days": 7,
            **options,
        }
        action._task = SimpleNamespace(args=args, check_mode=check_mode)
        action.validate_argument_spec = lambda spec: (None, args)
        return action.run(task_vars={"hostvars": hostvars})

    return call


def test_a_pass_is_reported_and_written(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run({"a": variables("a"), "b": variables("b")})
    assert (result["changed"], result["failed_pools"], result["message"]) == (False, [], "")
    assert result["pools"][0]["label"] == "PASS (SIMULATED)" and result["pools"][0]["simulated"] is True
    record = json.loads((tmp_path / "gate" / "l40s.json").read_text(encoding="utf-8"))
    assert record["run_id"] == "l40s-1" and record["passed"]
    assert (tmp_path / "gate" / "l40s.log").read_text(encoding="utf-8") == "the log"
    case, = ElementTree.parse(tmp_path / "gate" / "gate.junit.xml").getroot()[0]
    assert (case.get("name"), case.get("classname"), list(case)) == ("l40s", "gate (SIMULATED)", [])
    assert run({"a": variables("a")}, mode="verify")["failed_pools"] == []


def test_all_pools_are_reported_before_one_fails(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    quiet = {"nccl_gate_pool": "epyc", "__nccl_gate_member": {"pool": "epyc", "members": ["c"], "not_tested": "no GPU"}}
    hostvars = {"a": variables("a"), "b": {"nccl_gate_pool": "l40s"}, "c": quiet, "d": {}}
    result = run(hostvars)
    assert result["failed_pools"] == ["l40s"] and "not in this run: b" in result["message"]
    assert [pool["pool"] for pool in result["pools"]] == ["l40s", "epyc"]
    assert sorted(path.name for path in (tmp_path / "gate").iterdir()) == [
        ".lock", "epyc.json", "gate.junit.xml", "l40s.json", "l40s.log"]
    suite = ElementTree.parse(tmp_path / "gate" / "gate.junit.xml").getroot()[0]
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("l40s", ["error"]), ("epyc", ["skipped"])]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2", "failures": "0", "errors": "1", "skipped": "1"}
    assert run({"c": quiet})["failed_pools"] == []


def test_check_mode_writes_nothing(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run({"a": variables("a"), "b": variables("b")}, check_mode=True)
    assert result["pools"][0]["label"] == "NOT TESTED (check mode)" and result["failed_pools"] == []
    assert not (tmp_path / "gate").exists()


def test_verify_without_a_report_fails(run: t.Callable[..., t.Any]) -> None:
    assert run({"a": variables("a")}, mode="verify")["failed_pools"] == ["l40s"]


def test_a_folder_that_cannot_be_written_is_an_error(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    with pytest.raises(AnsibleActionFail, match="nccl_gate_report_dir"):
        run({"a": variables("a"), "b": variables("b")})


def test_a_skipped_step_did_not_run() -> None:
    facts = facts_of(variables("b"))
    assert facts.made == {} and facts.test == {} and facts.access
    assert facts_of({}).member == {}


def test_the_role_registers_what_is_read_here() -> None:
    root = Path(__file__).resolve().parents[4]
    tasks = "".join(path.read_text(encoding="utf-8") for path in (root / "roles/nccl_gate/tasks").glob("*.yml"))
    for variable in REGISTERED.values():
        assert f"register: {variable}\n" in tasks or f"{variable}:\n" in tasks


def test_a_search_is_shown_as_a_page_and_as_a_case_for_each_node(
        run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    setting = Setting("l40s", tuple(Node(f"h{i}") for i in range(1, 5)), HCAS, 4, LIMIT,
                      environment={"NCCL_IB_HCA": "=" + ",".join(HCAS.values())},
                      rules=rules_of({}, ["ring", "rails"], 4, False, 0.9))
    planner = Planner(setting.nodes, setting.rules, 1, "l40s")
    work = Searching(setting, planner, Hosts({("h2", 2): 0.48}), lambda text: None, lambda case: None, True)
    work.run()
    head = variables("a")
    slow = {**VERDICT, "state": "SLOW", "label": "SLOW (SIMULATED)", "reason": "48.0%"}
    head["__nccl_gate_test"] = {"verdict": slow}
    head["__nccl_gate_search"] = {"searched": True, "conclusion": planner.conclusion().to_dict(), "case": work.case(),
                                  "culprits": ["h2 rail 2"], "notes": []}
    result = run({"a": head, "b": variables("b")})
    assert "culprit h2 rail 2" in result["message"] and result["failed_pools"] == ["l40s"]
    page = (tmp_path / "gate" / "l40s.html").read_text(encoding="utf-8")
    assert "SIMULATED" in page and "h2 is slow with" in page
    suite = ElementTree.parse(tmp_path / "gate" / "gate.junit.xml").getroot()[0]
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("l40s", ["failure"]), ("h1", []), ("h2", ["failure"]), ("h3", []), ("h4", [])]
    assert run({"a": variables("a"), "b": variables("b")})["failed_pools"] == []
    assert not (tmp_path / "gate" / "l40s.html").exists()
