# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose tools answer by a script: call for call, in order; another call, or a missing one, fails the test."""
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.modules import mlx5_nvconfig

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


def node(tmp_path: Path) -> Path:
    """Two mlx5 functions, a virtual one, a stranger; booted once."""
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
