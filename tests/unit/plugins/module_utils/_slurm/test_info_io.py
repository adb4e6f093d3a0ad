# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import info_io
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_info

from tests.unit.plugins.module_utils._slurm.test_info_parse import PARTITION, RESERVATION, UNITS, fixture

MISSING = Result((), "missing")


def ok(text: str) -> Result:
    return Result((), "ok", 0, text)


ANSWERS: dict[tuple[str, ...], Result] = {
    ("scontrol", "--version"): ok("slurm-wlm 24.11.5\n"), ("slurmctld", "-V"): ok("slurm-wlm 24.11.5\n"),
    ("slurmd", "-V"): MISSING, ("slurmdbd", "-V"): MISSING, ("systemctl", "show"): ok(UNITS),
    ("scontrol", "ping"): ok("Slurmctld(primary) at ctl01 is UP\n"),
    ("scontrol", "show", "config"): ok(fixture("scontrol_show_config-24.11.txt")),
    ("scontrol", "-o", "show", "partition"): ok(PARTITION),
    ("scontrol", "-o", "show", "reservation"): ok(RESERVATION),
    ("scontrol", "--json", "show", "node"): ok(fixture("scontrol_show_node_json-24.11.json")),
    ("scontrol", "-o", "show", "node"): ok(fixture("scontrol_show_node-24.11.txt")),
}


def machine(root: Path, **changes: t.Any) -> Machine:
    answers = {**ANSWERS, **changes.pop("answers", {})}

    def run(argv: t.Sequence[str], timeout_seconds: float) -> Result:
        prefix = next(prefix for prefix in answers if tuple(argv[:len(prefix)]) == prefix)
        return replace(answers[prefix], argv=tuple(argv))

    return Machine(root, run)


def test_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "etc" / "slurm").mkdir(parents=True)
    (tmp_path / "etc" / "slurm" / "slurm.conf").write_text("ClusterName=lab\n", encoding="utf-8")
    (tmp_path / "etc" / "slurm" / "jwt.key").write_text("x", encoding="utf-8")
    found = info_io.read(machine(tmp_path))
    assert found["missing"] == [] and found["installed"] is True
    assert found["versions"] == {"scontrol": "24.11.5", "slurmctld": "24.11.5", "slurmd": None, "slurmdbd": None}
    assert found["summary"] == {"total": 4, "usable": 1, "drained": 2, "draining": 0, "down": 0, "invalid": 0,
                                "versions": ["24.11.5"]}
    assert list(found["config_files"]) == ["/etc/slurm/slurm.conf"] and len(found["config_hash"]) == 64
    assert found["daemons"] == {"munge": {"active": "active", "enabled": "enabled"}}


def test_without_json_the_text_says_the_same(tmp_path: Path) -> None:
    refused = Result((), "failed", 1, "", "scontrol: unrecognized option '--json'")
    old = machine(tmp_path, answers={("scontrol", "--json", "show", "node"): refused})
    texts, told = info_io.read(old, ("nodes",)), info_io.read(machine(tmp_path), ("nodes",))
    assert texts["missing"] == [] and texts["summary"] == told["summary"]


def test_only_some_nodes(tmp_path: Path) -> None:
    found = info_io.read(machine(tmp_path), ("nodes",), {"n2"})
    assert [node["name"] for node in found["nodes"]] == ["n2"] and found["nodes"][0]["owner"] == "gate"


@pytest.mark.parametrize("result", [
    Result((), "timeout", None, "", "no answer within 1 s"), ok("garbage"),
    Result((), "failed", 1, "", "Unable to contact slurm controller (connect failure)")])
def test_what_cannot_be_read_is_said(tmp_path: Path, result: Result) -> None:
    asked = {prefix: result for prefix in ANSWERS if prefix[0] == "scontrol" and prefix[1] != "--version"}
    found = info_io.read(machine(tmp_path, answers=asked))
    assert found["nodes"] == [] and found["config"] == {} and found["config_hash"] is None
    assert {problem["object"].split()[-1] for problem in found["missing"]} >= {"ping", "config", "node"}
    assert all(problem["hint"] for problem in found["missing"])


def test_no_slurm_here(tmp_path: Path) -> None:
    none = {prefix: MISSING for prefix in ANSWERS if prefix[0] != "systemctl"}
    found = info_io.read(machine(tmp_path, answers=none))
    assert found["installed"] is False and "nodes" not in found
    assert found["missing"][0]["hint"].startswith("install the package slurm-client")


def test_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(slurm_info, "Machine", lambda run, tool_timeout_seconds: machine(tmp_path))
    with patch_module_args({"gather": ["nodes", "versions"]}), pytest.raises(SystemExit):
        slurm_info.main()
    result = json.loads(capsys.readouterr().out)
    assert result["changed"] is False and len(result["nodes"]) == 4 and "partitions" not in result
