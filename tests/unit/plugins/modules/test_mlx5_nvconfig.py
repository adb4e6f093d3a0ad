# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against the command scripts of mlx5_nvconfig.yml."""
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.modules import mlx5_nvconfig

SCRIPTS = yaml.safe_load(Path(__file__).with_name("mlx5_nvconfig.yml").read_text(encoding="utf-8"))
HEADING = """
Device #1:
----------

Device type:        ConnectX7
Name:               N/A
Description:        N/A
Device:             {}

Configurations:                                     Default              Current              Next Boot
"""
MEMORY = "var/lib/aidc/mlx5_nvconfig.json"


class Script:
    """Answers the calls of a script in their order; another call, or a missing one, fails the test."""

    def __init__(self, steps: list[dict[str, t.Any]]) -> None:
        self.steps = list(steps)

    def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        assert self.steps, f"nothing more was to be called, got {list(argv)}"
        step = self.steps.pop(0)
        assert list(argv) == step["argv"]
        out = step.get("out", "")
        if "rows" in step:
            out = HEADING.format(argv[2]) + "".join(
                f"        {name:44}{' '.join(f'{value:20}' for value in values)}\n" for name, *values in step["rows"])
        if step.get("state"):
            said = f"no answer within {timeout_seconds:g} s; ended by us" if step["state"] == "timeout" else ""
            return Result(tuple(argv), step["state"], None, out, said)
        rc = step.get("rc", 0)
        return Result(tuple(argv), "failed" if rc else "ok", rc, out)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for pci, vendor in (("0000:03:00.0", "0x15b3"), ("0002:03:00.0", "0x15b3"), ("0000:03:00.2", "0x15b3"),
                        ("0000:00:1f.0", "0x8086")):
        function = tmp_path / "sys/bus/pci/devices" / pci
        function.mkdir(parents=True)
        (function / "vendor").write_text(f"{vendor}\n", encoding="utf-8")
    (tmp_path / "sys/bus/pci/devices/0000:03:00.2/physfn").symlink_to("../0000:03:00.0")
    boot_id = tmp_path / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("boot-1\n", encoding="utf-8")
    return tmp_path


def call(root: Path, script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
         **options: t.Any) -> t.Any:
    monkeypatch.setattr(mlx5_nvconfig, "Machine",
                        lambda tool_timeout_seconds: Machine(root, script, tool_timeout_seconds=tool_timeout_seconds))
    with patch_module_args(options), pytest.raises(SystemExit):
        mlx5_nvconfig.main()
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("entry", SCRIPTS, ids=[entry["id"] for entry in SCRIPTS])
def test_script(entry: dict[str, t.Any], root: Path, monkeypatch: pytest.MonkeyPatch,
                capsys: pytest.CaptureFixture[str]) -> None:
    script = Script(entry["run"])
    result = call(root, script, monkeypatch, capsys, **entry["options"], _ansible_diff=True,
                  _ansible_check_mode=entry.get("check", False))
    assert script.steps == [], "not called"
    for text in entry.get("msg", []):
        assert text in result["msg"]
    assert bool(result.get("failed")) is ("msg" in entry)
    assert {key: result[key] for key in entry.get("result", {})} == entry.get("result", {})
    remembered = ["write", "/" + MEMORY] in result["commands"] and not entry.get("check")
    assert (root / MEMORY).exists() is remembered
    assert {"changed", "commands"} <= set(result)


def test_every_kind_of_script_is_there() -> None:
    assert len(SCRIPTS) >= 20 and len({entry["id"] for entry in SCRIPTS}) == len(SCRIPTS)
    assert all(("msg" in entry) != ("result" in entry) for entry in SCRIPTS)


def test_a_reboot_that_loads_nothing_is_told_by_the_next_run(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = next(entry for entry in SCRIPTS if entry["id"] == "change")
    options = {**entry["options"], "bmc_powered": None}
    call(root, Script(entry["run"]), monkeypatch, capsys, **options)
    pending = [entry["run"][3], {"argv": entry["run"][1]["argv"], "state": "missing"}]
    same_boot = call(root, Script(pending), monkeypatch, capsys, **options)
    assert (same_boot["reboot_required"], same_boot["power_cycle_required"]) == (True, False)
    (root / "proc/sys/kernel/random/boot_id").write_text("boot-2\n", encoding="utf-8")
    later = call(root, Script(pending), monkeypatch, capsys, **options)
    assert (later["changed"], later["reboot_required"], later["power_cycle_required"]) == (False, False, True)
    (root / MEMORY).write_text("[1, {", encoding="utf-8")
    assert call(root, Script(pending), monkeypatch, capsys, **options)["reboot_required"] is True
