# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter import gate_plan, gate_rails


def test_each_question_has_its_answer() -> None:
    plan = gate_plan.FilterModule().filters()["gate_plan"]
    members = {"a": {"rails": [], "problems": [], "address": "192.0.2.1", "port": 22}}
    assert plan({}, "peers", ["a", "b"], "a") == ["b"]
    assert plan(members, "problems", ["a"]) == []
    assert plan(members, "targets", ["a"], "a") == []
    assert plan({}, "ready", ["a"], access={"a": {"host_keys": ["k"]}}, paths={"a": {"too_small": 0}}) is True
    assert plan(members, "hosts", ["a"])[0]["hostname"] == "a"


@pytest.mark.parametrize(
    ("members", "what"), [({}, "nothing"), ({}, "hosts"), (None, "problems"), ({"b": {}}, "targets")]
)
def test_bad_input_is_a_filter_error(members: object, what: str) -> None:
    with pytest.raises(AnsibleFilterError, match="gate_plan"):
        gate_plan.gate_plan(members, what, ["a"], "a")


def test_rails_of_something_else_are_a_filter_error() -> None:
    rails = gate_rails.FilterModule().filters()["gate_rails"]
    assert rails({"devices": []}, ["0000:03:00.0"])["rails"] == []
    with pytest.raises(AnsibleFilterError, match="gate_rails"):
        rails({}, [])
