# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.reset import means, tool_of

LIVE, WARM, NONE = frozenset({3, 4}), frozenset({4}), frozenset[int]()


@pytest.mark.parametrize(("bmc", "levels", "rebooted", "told", "order", "words"), [
    (True, LIVE, False, False, "firmware_reset", "a reboot alone does not load them"),
    (False, LIVE, False, False, "firmware_reset", "a reboot of the node loads them too"),
    (None, LIVE, False, False, "firmware_reset", "Reset the firmware of the idle card"),
    (False, LIVE, True, False, "firmware_reset", "A reboot since they were written did not load them"),
    (True, WARM, False, False, "power_cycle", "its board keeps the NIC's power"),
    (True, None, False, False, "power_cycle", "does not tell which resets"),
    (False, WARM, False, False, "reboot", "does not support level 3"),
    (False, None, False, False, "reboot", "Reboot the node"),
    (None, NONE, False, False, "reboot", "if they are still pending after it, power cycle"),
    (None, NONE, True, False, "power_cycle", "did not load them. Power cycle the node"),
    (False, LIVE, False, True, "power_cycle", "mstconfig said so"),
])
def test_means(bmc: bool | None, levels: frozenset[int] | None, rebooted: bool, told: bool, order: str, words: str
               ) -> None:
    found = means("mstconfig", "0000:03:00.0", bmc, levels, rebooted=rebooted, told_power_cycle=told)
    assert found.order == (order,) and words in found.reason
    assert bool(found.command) is (order == "firmware_reset")
    data = found.as_dict()
    assert (data["reset_required"], data["reboot_required"], data["power_cycle_required"]) == (
        True, order == "reboot", order == "power_cycle")


def test_the_reset_tool_comes_with_the_other() -> None:
    assert [tool_of(tool) for tool in ("mlxconfig", "mstconfig")] == ["mlxfwreset", "mstfwreset"]
    assert means("mlxconfig", "p", True, LIVE).command == ("mlxfwreset", "-d", "p", "-l", "3", "-y", "reset")
