# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import report_io
from ansible_collections.aidc.gpu_cluster.plugins.modules import slurm_interruptions

NOW = 1_700_000_000.0
PARAMS: dict[str, t.Any] = {name: one.get("default") for name, one in report_io.spec().items()}
EVENTS = f"n1|{int(NOW) - 7200}|{int(NOW) - 3600}|DOWN*|slurm(64030)|Not responding\n"


class Tools:
    def __init__(self, **answers: Result) -> None:
        self.answers = {"sacctmgr": Result((), "ok", 0, EVENTS), "sacct": Result((), "ok", 0, ""),
                        "sinfo": Result((), "ok", 0, "n1\nn2\nn2\n"), **answers}
        self.calls: list[tuple[str, ...]] = []

    def machine(self) -> Machine:
        def run(argv: t.Sequence[str], timeout_seconds: float) -> Result:
            self.calls.append(tuple(argv))
            name = argv[2] if argv[0] == "env" else argv[0]
            return replace(self.answers[name], argv=tuple(argv))

        return Machine(Path("/nowhere"), run)


def test_what_is_asked_and_what_comes() -> None:
    tools = Tools()
    found = report_io.read(tools.machine(), {**PARAMS, "days": 1.0}, NOW)
    assert found["report"]["interruptions"] == 1 and found["report"]["nodes"] == 2
    assert found["report"]["node_hours"] == {"total": 48.0, "lost": 1.0, "lost_planned": 0.0,
                                             "available_percent": 97.917}
    assert tools.calls[0][:2] == ("env", "SLURM_TIME_FORMAT=%s")
    assert f"start=uts{int(NOW) - 86400}" in tools.calls[0] and f"uts{int(NOW)}" in tools.calls[1]
    assert "-D" in tools.calls[1], "a requeued job's first run counts, too"


def test_window() -> None:
    found = report_io.window({**PARAMS, "start": "2023-11-01T00:00:00Z", "end": "2023-11-02T00:00:00Z"}, NOW)
    assert found.hours == 24.0
    assert report_io.window({**PARAMS, "end": "2033-01-01T00:00:00Z"}, NOW).end == NOW
    for bad in ({"start": "yesterday"}, {"end": "2023-11-02"}, {"start": "2033-01-01T00:00:00Z"}, {"days": 0.0}):
        with pytest.raises(AidcError):
            report_io.window({**PARAMS, **bad}, NOW)


@pytest.mark.parametrize(("result", "words"), [
    (Result((), "failed", 127, "", "env: 'sacctmgr': No such file or directory"), "install the package slurm-client"),
    (Result((), "failed", 1, "", "Access denied"), "does slurmdbd run"),
    (Result((), "ok", 0, "garbage"), "cannot be read"),
    (Result((), "timeout", None, "", "no answer within 1 s"), "slurmdbd does not answer")])
def test_no_accounting(result: Result, words: str) -> None:
    with pytest.raises(AidcError, match=words):
        report_io.read(Tools(sacctmgr=result).machine(), PARAMS, NOW)


def test_without_slurmctld_there_is_still_a_report() -> None:
    found = report_io.read(Tools(sinfo=Result((), "failed", 1, "", "Unable to contact")).machine(), PARAMS, NOW)
    assert found["report"]["nodes"] is None and found["report"]["interruptions"] == 1


def test_the_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(slurm_interruptions, "Machine", lambda run, tool_timeout_seconds: Tools().machine())

    def run(**options: t.Any) -> t.Any:
        with patch_module_args(options), pytest.raises(SystemExit):
            slurm_interruptions.main()
        return json.loads(capsys.readouterr().out)

    assert run(days=40000)["report"]["interruptions"] == 1
    assert run(start="never")["problems"][0]["object"] == "start"
