# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beside test_host_info.py, as a managed node's Python, under which that one runs too, reads no YAML."""
from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.modules import host_info

from tests.unit.plugins.host_node import gb200
from tests.unit.plugins.modules.test_host_info import call


def test_the_documentation_names_every_value(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = call(gb200(tmp_path), monkeypatch, capsys)
    documented = yaml.safe_load(host_info.RETURN)
    assert set(found) - {"changed", "invocation"} == set(documented) - {"record_file"}
    for name, value in found.items():
        entry = documented.get(name, {})
        first = value[0] if isinstance(value, list) and value else value
        if "contains" in entry and isinstance(first, dict):
            assert set(first) == set(entry["contains"]), name
