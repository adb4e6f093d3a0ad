# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller comes back and cancels; where it cannot, or what it did is not known, the host's undo is told."""
from __future__ import annotations

import typing as t
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.aidc.gpu_cluster.plugins.action.rail_network import ActionModule
from ansible_collections.aidc.gpu_cluster.plugins.plugin_utils import reverting

ARMED = {"id": "rail_network-1", "module": "rail_network", "state": "armed", "seconds": 60.0, "undone_at": None,
         "reason": None, "problems": []}
UNDONE = {**ARMED, "state": "undone", "undone_at": "2026-11-30T12:00:00Z",
          "reason": "the controller did not come back within 60 s"}
RESULT = {"changed": True, "commands": [["networkctl", "reload"]], "armed": ARMED}
LOST = AnsibleConnectionFailure("no way")
MODULE, REVERT = "aidc.gpu_cluster.rail_network", "aidc.gpu_cluster.armed_revert"


class Way:
    """Answers in order; an exception is a try that does not get through."""

    def __init__(self, *answers: t.Any) -> None:
        self.answers, self.asked, self.resets, self.now = list(answers), [], 0, 0.0  # type: ignore[var-annotated]

    def execute(self, module_name: str, module_args: dict[str, t.Any], task_vars: t.Any) -> t.Any:
        self.asked.append((module_name, module_args.get("state")))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def reset(self) -> None:
        self.resets += 1

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    def call(way: Way, check_mode: bool = False, **args: t.Any) -> t.Any:
        action: t.Any = object.__new__(ActionModule)
        action._task = SimpleNamespace(args={"allow_management": True, **args}, check_mode=check_mode)
        action._connection, action._execute_module = way, way.execute
        monkeypatch.setattr(ActionBase, "run", lambda *arguments: {})
        monkeypatch.setattr(reverting.time, "sleep", way.sleep)
        monkeypatch.setattr(reverting.time, "monotonic", lambda: way.now)
        return action.run(task_vars={"inventory_hostname": "h1"})

    return call


def test_without_an_armed_revert_nobody_comes_back(run: t.Callable[..., t.Any]) -> None:
    way = Way({"changed": False, "armed": None})
    assert run(way) == {"changed": False, "armed": None}
    assert (way.asked, way.resets) == ([(MODULE, None)], 0)


def test_it_is_cancelled_over_a_new_connection(run: t.Callable[..., t.Any]) -> None:
    way = Way(RESULT, {"changed": True, "before": [ARMED]})
    found = run(way)
    assert (found["changed"], found["armed"]["state"]) == (True, "cancelled")
    assert (way.asked, way.resets) == ([(MODULE, None), (REVERT, "cancelled")], 1)


def test_it_tries_until_the_host_answers(run: t.Callable[..., t.Any]) -> None:
    way = Way(RESULT, LOST, LOST, {"before": [ARMED]})
    assert run(way)["armed"]["state"] == "cancelled" and way.resets == 3


def test_an_undo_on_its_way_is_waited_for(run: t.Callable[..., t.Any]) -> None:
    found = run(Way(RESULT, {"before": [{**ARMED, "state": "undoing"}]}, {"before": [UNDONE]}))
    assert found["failed"] is True and "was undone" in found["msg"]


def test_too_late(run: t.Callable[..., t.Any]) -> None:
    found = run(Way(RESULT, LOST, {"before": [{**UNDONE, "problems": ["x: broken"]}]}))
    assert (found["failed"], found["changed"], found["commands"]) == (True, False, [])
    assert "was undone on the host at 2026-11-30T12:00:00Z because the controller did not come back within 60 s" \
        in found["msg"] and "x: broken" in found["msg"]


def test_the_host_was_rebooted_meanwhile(run: t.Callable[..., t.Any]) -> None:
    reason = "the host was rebooted before the controller had come back"
    found = run(Way(RESULT, LOST, {"before": [{**UNDONE, "reason": reason}]}))
    assert f"because {reason}." in found["msg"] and "within" not in found["msg"]


def test_a_module_whose_result_is_lost_is_undone_and_not_kept(run: t.Callable[..., t.Any]) -> None:
    way = Way(LOST, {"before": [ARMED]}, {"before": [{**ARMED, "state": "undoing"}]}, {"before": [UNDONE]})
    assert "was undone on the host" in run(way)["msg"]
    assert {state for name, state in way.asked if name == REVERT} == {"status"}


def test_lost_before_anything_was_armed(run: t.Callable[..., t.Any]) -> None:
    with pytest.raises(AnsibleConnectionFailure, match="no way"):
        run(Way(LOST, {"before": []}))


def test_a_host_that_never_answers_is_unreachable(run: t.Callable[..., t.Any]) -> None:
    way = Way(RESULT, LOST)
    with pytest.raises(AnsibleConnectionFailure, match="it undoes it by itself 20 s after the last write"):
        run(way, revert_seconds=20)
    assert 80 <= way.now <= 82


@pytest.mark.parametrize(("args", "check_mode"), [
    ({"allow_management": False}, False), ({"allow_management": "no"}, False), ({}, True)])
def test_without_the_option_a_lost_host_is_just_unreachable(
    run: t.Callable[..., t.Any], args: dict[str, t.Any], check_mode: bool
) -> None:
    way = Way(LOST)
    with pytest.raises(AnsibleConnectionFailure, match="no way"):
        run(way, check_mode, **args)
    assert (way.asked, way.resets) == ([(MODULE, None)], 0)


def test_a_cancel_that_fails_is_a_failure(run: t.Callable[..., t.Any]) -> None:
    found = run(Way(RESULT, {"failed": True, "msg": "/run/lock/aidc.lock: held"}))
    assert (found["failed"], found["changed"], found["msg"]) == (True, True, "/run/lock/aidc.lock: held")
