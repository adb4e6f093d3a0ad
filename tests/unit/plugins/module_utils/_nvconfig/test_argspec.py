# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig import argspec

PARAMS = {"devices": [{"pci": " 0000:C1:00.0 ", "parameters": {"link_type_p1": None, "A": 2}},
                      {"pci": "0000:41:00.0", "parameters": None}],
          "parameters": {"LINK_TYPE_P1": "ETH", "a": 1}, "unknown_parameters": "skip", "tool": "auto",
          "bmc_powered": None, "tool_timeout_seconds": 0}


def test_a_devices_own_parameters_win_and_null_takes_away() -> None:
    request = argspec.request(PARAMS)
    assert [want.pci for want in request.devices] == ["0000:c1:00.0", "0000:41:00.0"]
    texts = [{name: wanted.text for name, wanted in want.parameters.items()} for want in request.devices]
    assert texts == [{"A": "2"}, {"LINK_TYPE_P1": "ETH", "A": "1"}]
    assert (request.unknown_parameters, request.tool, request.bmc_powered) == ("skip", "auto", None)


def test_timeout_is_at_least_a_second() -> None:
    assert argspec.timeout(PARAMS) == 1.0
