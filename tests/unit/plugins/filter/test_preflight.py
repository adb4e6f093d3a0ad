# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter.preflight_findings import FilterModule as Findings
from ansible_collections.aidc.gpu_cluster.plugins.filter.preflight_report import FilterModule as Report

from tests.unit.plugins.module_utils._preflight.test_settings import VALUES

findings = Findings().filters()["preflight_findings"]
report = Report().filters()["preflight_report"]
X = "4a1c3e0f5b7d49d2a8c6e1f203948576"


def variables(machine_id: str | None, errors: t.Sequence[str] = ()) -> dict[str, t.Any]:
    return {"__preflight_info": {"machine_id": machine_id},
            "__preflight_findings": {"errors": list(errors), "warnings": ["w"]}}


def test_findings_are_texts() -> None:
    found = findings({"unreachable": True, "msg": "no route"}, "n1", VALUES)
    assert found == {"warnings": [], "errors": [
        "host: got unreachable: no route, wanted an SSH connection (is it up? ssh to it by hand)"]}


def test_findings_refuse_bad_settings() -> None:
    with pytest.raises(AnsibleFilterError, match="preflight_disks"):
        findings({}, "n1", {**VALUES, "disks": 1})


def test_report_joins_hosts_and_finds_twins_in_the_fleet_record() -> None:
    hostvars = {"a": variables(X, ["e1", "e2"]), "b": variables("b" * 32), "c": variables(X), "d": {}}
    record = {"data": {"machine_id": "b" * 32}}
    found = report(hostvars, ["a", "b"], {"c": {"data": {"machine_id": X}}, "gone": record, "b": record})
    assert found["errors"][:2] == ["a: e1", "a: e2"]
    assert found["errors"][2].startswith(f"a: machine-id: got {X}, that of c too")
    assert len(found["errors"]) == 3, "a record of a host that is no longer in the inventory counts for nothing"
    assert found["by_host"] == {"a": found["errors"], "b": []}
    assert found["warnings"] == ["a: w", "b: w"]


def test_a_host_without_results_is_no_crash() -> None:
    assert report({"d": {}}, ["d"]) == {"errors": [], "warnings": [], "by_host": {"d": []}}


@pytest.mark.parametrize("arguments", [([], ["a"]), ({}, "a"), ({}, [1])])
def test_report_refuses_other_shapes(arguments: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="preflight_report"):
        report(*arguments)
