# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beside test_nvidia_driver.py, as a managed node's Python, under which that one runs too, reads no YAML."""
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.modules import nvidia_driver

from tests.unit.plugins import gpu_node
from tests.unit.plugins.driver_node import bare
from tests.unit.plugins.gpu_node import GpuNode
from tests.unit.plugins.modules.test_nvidia_driver import call


@pytest.mark.parametrize("make", [bare, gpu_node.epyc])
def test_the_documentation_names_every_value(
        make: t.Callable[[Path], GpuNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    found = call(make(tmp_path), monkeypatch, capsys)
    documented = yaml.safe_load(nvidia_driver.RETURN)
    assert set(found) - {"changed", "invocation", "diff"} == set(documented) - {"problems"}
    for name, value in found.items():
        entry = documented.get(name, {})
        first = value[0] if isinstance(value, list) and value else value
        if "contains" in entry and isinstance(first, dict):
            assert set(first) == set(entry["contains"]), name
