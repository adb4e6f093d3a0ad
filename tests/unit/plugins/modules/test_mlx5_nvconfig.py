# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a managed node runs it (no YAML there); all its cases: test_mlx5_nvconfig_scripts.py."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from tests.unit.plugins.nvconfig_script import MEMORY, Script, call, node

PCI = "0000:03:00.0"
OPTIONS = {"devices": [{"pci": PCI}], "parameters": {"LINK_TYPE_P1": "ETH"}, "tool": "mlxconfig"}
ASK = ["mlxconfig", "-d", PCI, "-e", "q", "LINK_TYPE_P1"]
BEFORE = {"argv": ASK, "rows": [["LINK_TYPE_P1", "IB(1)", "IB(1)", "IB(1)"]]}
PENDING = {"argv": ASK, "rows": [["LINK_TYPE_P1", "IB(1)", "IB(1)", "ETH(2)"]]}
NO_RESET = {"argv": ["mlxfwreset", "-d", PCI, "query"], "state": "missing"}
SET = {"argv": ["mlxconfig", "-y", "-d", PCI, "set", "LINK_TYPE_P1=ETH"]}


def test_check_mode_then_run_then_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    root = node(tmp_path)
    predicted = call(root, Script([BEFORE, NO_RESET]), monkeypatch, capsys, **OPTIONS, _ansible_check_mode=True)
    assert not (root / MEMORY).exists()
    real = call(root, Script([BEFORE, NO_RESET, SET, PENDING]), monkeypatch, capsys, **OPTIONS)
    for key in ("changed", "before", "after", "commands", "steps", "pending", "reboot_required"):
        assert predicted[key] == real[key]
    assert real["changed"] is True and (root / MEMORY).stat().st_mode & 0o777 == 0o644
    assert call(root, Script([PENDING, NO_RESET]), monkeypatch, capsys, **OPTIONS)["changed"] is False


def test_failure_names_object_got_wanted_and_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, t.Any] = {**OPTIONS, "devices": [{"pci": "0000:99:00.0"}]}
    result = call(node(tmp_path), Script([]), monkeypatch, capsys, **options)
    assert result["failed"] is True and result["msg"].endswith("Nothing was changed.")
    assert result["problems"] == [{"object": "0000:99:00.0", "got": "no such PCI function",
                                   "wanted": "an mlx5 function", "hint": ""}]


def test_a_reboot_that_loads_nothing_is_told_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = node(tmp_path)
    call(root, Script([BEFORE, NO_RESET, SET, PENDING]), monkeypatch, capsys, **OPTIONS)
    same_boot = call(root, Script([PENDING, NO_RESET]), monkeypatch, capsys, **OPTIONS)
    assert (same_boot["reboot_required"], same_boot["power_cycle_required"]) == (True, False)
    (root / "proc/sys/kernel/random/boot_id").write_text("boot-2\n", encoding="utf-8")
    later = call(root, Script([PENDING, NO_RESET]), monkeypatch, capsys, **OPTIONS)
    assert (later["changed"], later["reboot_required"], later["power_cycle_required"]) == (False, False, True)
    (root / MEMORY).write_text("[1, {", encoding="utf-8")
    broken = call(root, Script([PENDING, NO_RESET]), monkeypatch, capsys, **OPTIONS)
    assert broken["reboot_required"] is True
