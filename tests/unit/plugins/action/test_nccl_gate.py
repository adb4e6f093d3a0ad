# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import re
import stat
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action import nccl_gate
from ansible_collections.aidc.gpu_cluster.plugins.action.nccl_gate import MODULE, ActionModule
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate import argspec, document
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gate.argspec import SEARCH
from ansible_collections.aidc.gpu_cluster.plugins.modules.nccl_batch import ARGUMENT_SPEC

from tests.unit.plugins.module_utils._gate.launched import HCAS, LIMIT, Hosts

SLOW = {"state": "SLOW", "label": "SLOW (SIMULATED)", "simulated": True}
ARGS: dict[str, t.Any] = {
    "pool": "gb200", "search": "on_failure", "first": {"verdict": SLOW}, "run_id": "gb200-1",
    "hosts": [{"name": f"gb{i}", "address": f"192.0.2.{i}", "host_keys": ["k"]} for i in range(1, 5)],
    "leaves": {"gb1": "leaf1", "gb2": ""}, "rails": [{"rail": rail, "hca": hca} for rail, hca in HCAS.items()],
    "gpus_per_host": 4, "min_busbw_gbps": LIMIT, "allow_simulated": True,
    "environment": {"NCCL_ALGO": "RING", "NCCL_IB_TIMEOUT": 20, "NCCL_IB_HCA": "=" + ",".join(HCAS.values())},
}


class Killed(Exception):
    """As if the controller's process ended here."""


class Controller:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.said, self.calls = folder, t.cast("list[str]", []), 0
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        monkeypatch.setattr(nccl_gate, "Display", lambda: SimpleNamespace(display=self.said.append))

    def run(self, hosts: t.Any, check_mode: bool = False, killed_at: int = 0, **changes: t.Any) -> dict[str, t.Any]:
        defaults = {name: spec["default"] for name, spec in SEARCH.items() if "default" in spec}
        args = {**defaults, **ARGS, "report_dir": str(self.folder), **changes}

        def execute(module_name: str, module_args: dict[str, t.Any], task_vars: t.Any) -> dict[str, t.Any]:
            assert module_name == MODULE and set(module_args) <= set(ARGUMENT_SPEC)
            assert task_vars == {"a": 1}
            self.calls += 1
            if self.calls == killed_at:
                raise Killed
            found = hosts(module_args["runs"])
            return found if "msg" in found else {"changed": False, "runs": list(found.values())}

        action: t.Any = object.__new__(ActionModule)
        action._task = SimpleNamespace(args=args, check_mode=check_mode)
        action.validate_argument_spec = lambda spec: (None, args)
        action._execute_module = execute
        return t.cast("dict[str, t.Any]", action.run(task_vars={"a": 1}))

    def stored(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads((self.folder / "gb200.search.json").read_text(encoding="utf-8")))


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(tmp_path / "gate", monkeypatch)


def test_the_slow_rail_is_named_and_the_search_is_stored_for_the_command_line(controller: Controller) -> None:
    result = controller.run(Hosts({("gb2", 2): 0.48}))
    assert result["searched"] and not result["changed"] and not result["resumed"] and result["notes"] == []
    (line,) = result["culprits"]
    assert re.fullmatch(r"gb2 rail 2 \(mlx5_2\): 0\.(49|50) of its peers in \d+ runs", line)
    assert result["conclusion"]["bad_nodes"] == ["gb2"]
    assert result["launches"] > controller.calls == len(controller.said)
    path = controller.folder / "gb200.search.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    found = document.of_case(controller.stored(), allow_simulated=True)
    assert found["simulated"] and found["search"]["bad_nodes"] == ["gb2"]
    assert controller.stored()["done"] and controller.stored()["search"]["nodes"][0] == ["gb1", "leaf1"]
    # All of it must be able to go through Ansible's results.
    json.dumps(result)


def test_a_search_in_a_lab_says_so_whatever_the_first_run_has_shown(controller: Controller) -> None:
    hung = {"verdict": {"state": "HANG", "label": "HANG", "simulated": False}}
    assert controller.run(Hosts(hung={"gb3"}), first=hung, search="always")["culprits"][0].startswith("gb3: hangs in ")
    assert controller.stored()["simulated"]
    controller.run(Hosts(hung={"gb3"}), first=hung, search="always", allow_simulated=False)
    assert not controller.stored()["simulated"]


def test_a_killed_controller_is_gone_on_with_by_the_next_run(controller: Controller) -> None:
    with pytest.raises(Killed):
        controller.run(Hosts({("gb2", 2): 0.48}), killed_at=6)
    known = len(controller.stored()["search"]["outcomes"])
    assert known >= 5 and not controller.stored()["done"]
    result = controller.run(Hosts({("gb2", 2): 0.48}), run_id="gb200-2")
    assert result["resumed"] and result["conclusion"]["bad_nodes"] == ["gb2"]
    assert f"{known} runs are known" in controller.said[6], controller.said
    assert controller.run(Hosts({("gb2", 2): 0.48}))["resumed"] is False, "that one was over"


def test_a_worker_whose_controller_was_killed_asks_the_hosts_for_nothing_more(
        controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, hosts = os.getppid(), Hosts({("gb2", 2): 0.48})

    def until(runs: list[dict[str, t.Any]]) -> t.Any:
        monkeypatch.setattr(os, "getppid", lambda: parent if controller.calls < 4 else 1)
        return hosts(runs)

    result = controller.run(until)
    assert controller.calls == 4 and result["notes"] == ["the search was ended: ansible-playbook is gone"]
    monkeypatch.undo()
    assert len(controller.stored()["search"]["outcomes"]) >= 4 and not controller.stored()["done"]


def test_with_other_limits_or_too_late_a_new_search_starts(controller: Controller) -> None:
    for changes in ({"min_busbw_gbps": LIMIT - 1}, {"max_age_seconds": -1}, {"rules": {"looks": 4}}):
        controller.calls = 0
        with pytest.raises(Killed):
            controller.run(Hosts({("gb2", 2): 0.48}), killed_at=4)
        assert controller.run(Hosts({("gb2", 2): 0.48}), **changes)["resumed"] is False


def test_when_everybody_is_slow_nobody_is_named(controller: Controller) -> None:
    result = controller.run(Hosts(everybody=0.5))
    assert result["searched"] and result["culprits"] == [] and result["conclusion"]["bad_nodes"] == []
    assert "nobody is blamed" in result["conclusion"]["reason"]


@pytest.mark.parametrize(("state", "search"), [
    ("PASS", "on_failure"), ("LAUNCH", "on_failure"), ("INVALID", "always"), ("SLOW", "never")])
def test_no_search_where_none_is_wanted(controller: Controller, state: str, search: str) -> None:
    result = controller.run(None, first={"verdict": {"state": state}}, search=search)
    assert (result["searched"], result["conclusion"], controller.calls) == (False, None, 0)
    assert not controller.folder.exists()


def test_a_pool_that_passes_forgets_the_search_that_was_cut_short(controller: Controller) -> None:
    with pytest.raises(Killed):
        controller.run(Hosts({("gb2", 2): 0.48}), killed_at=3)
    controller.run(None, first={"verdict": {"state": "PASS"}})
    assert list(controller.folder.iterdir()) == []


def test_check_mode_searches_nothing(controller: Controller) -> None:
    assert controller.run(None, check_mode=True)["searched"] is False and controller.calls == 0


def test_a_host_that_cannot_be_asked_ends_the_search_with_words(controller: Controller) -> None:
    result = controller.run(lambda runs: {"failed": True, "msg": "no key of it on this host"})
    assert result["notes"] == ["the search was ended: no key of it on this host"]
    assert (result["conclusion"]["verdict"], result["culprits"]) == ("INCOMPLETE", [])


def test_a_head_that_is_gone_leaves_what_was_known(controller: Controller) -> None:
    hosts, calls = Hosts({("gb2", 2): 0.48}), []

    def until(runs: list[dict[str, t.Any]]) -> t.Any:
        calls.append(runs)
        if len(calls) == 6:
            raise AnsibleConnectionFailure("Failed to connect to the host via ssh:\n timed out")
        return hosts(runs)

    result = controller.run(until)
    assert result["notes"] == ["the search was ended: the head cannot be reached: "
                               "Failed to connect to the host via ssh: timed out"]
    assert result["searched"] and len(controller.stored()["search"]["outcomes"]) >= 5
    assert controller.run(hosts)["resumed"]


@pytest.mark.parametrize("changes", [{"rules": {"x": 1}}, {"kinds": ["rails"]}])
def test_what_the_planner_cannot_do_is_refused(controller: Controller, changes: dict[str, t.Any]) -> None:
    with pytest.raises(AnsibleActionFail):
        controller.run(Hosts(), **changes)
    with pytest.raises(AnsibleActionFail):
        controller.run(Hosts(), first={"verdict": {"state": "PASS"}}, **changes)


def test_options_are_the_roles(controller: Controller) -> None:
    root = Path(__file__).resolve().parents[4]
    text = (root / "roles/nccl_gate/tasks/test.yml").read_text(encoding="utf-8")
    task = text[text.index("aidc.gpu_cluster.nccl_gate:"):text.index("register: __nccl_gate_search")]
    assert set(re.findall(r"^        (\w+):", task, re.MULTILINE)) == set(argspec.SEARCH)
