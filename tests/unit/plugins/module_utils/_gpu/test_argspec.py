# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Wanted


def test_nothing_is_wanted() -> None:
    assert argspec.wanted({"class": {}}) == argspec.wanted({"class": None}) == Wanted()


def test_a_class() -> None:
    given = {"gpu_count": 4, "gpu_pci_ids": ["10DE:2941"], "module_parameters": {"NVreg_A": True, "B": "0x1", "C": 2},
             "board": "nvl", "mig": False}
    assert argspec.wanted({"class": given}) == Wanted(
        4, ("10de:2941",), "nvl", module_parameters={"A": "1", "B": "0x1", "C": "2"}, mig=False)


def test_rails_and_time() -> None:
    assert argspec.rails({"rails": [" 0000:C1:00.0"]}) == ["0000:c1:00.0"]
    assert argspec.timeout({"tool_timeout_seconds": 0}) == 1.0


def test_each_call_has_its_own() -> None:
    """AnsibleModule writes defaults into it."""
    argspec.info()["class"]["default"]["gpu_count"] = 8
    assert argspec.info()["class"]["default"] == {}
