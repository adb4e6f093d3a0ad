# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.aidc.gpu_cluster.plugins.filter import rail_findings, rail_problems, rail_table


def use(module: t.Any, name: str) -> t.Any:
    return module.FilterModule().filters()[name]


def test_table() -> None:
    table = use(rail_table, "rail_table")
    assert table({}, ["h1"])[1].split()[:4] == ["h1", "-", "no", "record"]
    with pytest.raises(AnsibleFilterError, match=r"rail_table: records\['h1'\]: got int"):
        table({"h1": 1}, ["h1"])


def test_findings() -> None:
    findings = use(rail_findings, "rail_findings")
    rails = [{"rail": 0, "pci": "0000:03:00.0"}]
    assert "h1 rail 0" in findings({"devices": []}, "h1", rails, 4200, 4096)[0]
    with pytest.raises(AnsibleFilterError, match="rail_findings: mlx5_info.devices"):
        findings(None, "h1", rails, 4200, 4096)


def test_problems() -> None:
    assert use(rail_problems, "rail_problems")(None, 4200, 4096) == [
        "mlx5_port_rails: got None, wanted a list with one entry per rail"]
