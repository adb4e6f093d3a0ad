# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock; everything else of a whole call is in the command scripts (tests/unit/plugins/modules)."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.lock import host_lock
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.model import Request, make_want

PCI = "0000:03:00.0"


def machine(root: Path, calls: list[t.Any], now: list[float]) -> Machine:
    def run(argv: t.Sequence[str], timeout_seconds: float) -> Result:
        calls.append(list(argv))
        return Result(tuple(argv), "ok", 0, "Configurations: Default Current Next Boot\n A 1 1 1\n")

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Machine(root, run, sleep, lambda: now[0])


def test_two_runs_do_not_mix_and_check_mode_needs_no_lock(tmp_path: Path) -> None:
    function = tmp_path / "sys/bus/pci/devices" / PCI
    function.mkdir(parents=True)
    (function / "vendor").write_text("0x15b3\n", encoding="utf-8")
    calls: list[t.Any] = []
    host = machine(tmp_path, calls, [0.0])
    request = Request((make_want(PCI, {"A": 1}),))
    with host_lock(host, "another run"):
        with pytest.raises(AidcError, match=r"another run.*Nothing was changed"):
            configure(host, request, check_mode=False)
        assert calls == []
        assert configure(host, request, check_mode=True)["changed"] is False
    assert configure(host, request, check_mode=False)["commands"] == []
    assert calls == [["mlxconfig", "-d", PCI, "-e", "q", "A"]] * 2


def test_bad_input_runs_no_tool(tmp_path: Path) -> None:
    calls: list[t.Any] = []
    with pytest.raises(AidcError, match="no such PCI function"):
        configure(machine(tmp_path, calls, [0.0]), Request((make_want(PCI, {"A": 1}),)), check_mode=False)
    with pytest.raises(AidcError, match="a PCI address such as"):
        configure(machine(tmp_path, calls, [0.0]), Request((make_want("03:00.0", {"A": 1}),)), check_mode=False)
    assert calls == []
