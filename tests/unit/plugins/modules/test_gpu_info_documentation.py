# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beside test_gpu_info.py, as a managed node's Python, under which that one runs too, reads no YAML."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.modules import gpu_info

from tests.unit.plugins.gpu_node import GpuNode, epyc, gb200
from tests.unit.plugins.holders import slurm_step
from tests.unit.plugins.modules.test_gpu_info import call


def full(root: Path) -> GpuNode:
    node = gb200(root)
    node.journal = "1796090588.1 gb1 kernel: NVRM: Xid (PCI:0008:01:00): 13, pid=7, name=python3, Graphics Exception\n"
    slurm_step(root, 4711, "python3", "/dev/nvidia0")
    return node


@pytest.mark.parametrize("make", [full, epyc])
def test_the_documentation_names_every_value(
        make: t.Callable[[Path], GpuNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    found = call(make(tmp_path), monkeypatch, capsys, **{"class": {"gpu_count": 4}} if make is full else {})
    documented = yaml.safe_load(gpu_info.RETURN)
    assert set(found) - {"changed", "invocation"} == set(documented) - {"record_file"}
    for name, value in found.items():
        entry = documented.get(name, {})
        first = value[0] if isinstance(value, list) and value else value
        if "contains" in entry and isinstance(first, dict):
            assert set(first) == set(entry["contains"]), name
