# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine


def test_paths_lie_below_the_root() -> None:
    assert Machine(Path("/tmp/x")).path("/etc/hosts") == Path("/tmp/x/etc/hosts")
    assert Machine().path("/etc/hosts") == Path("/etc/hosts")


def test_a_tool_gets_the_time_limit() -> None:
    assert Machine(tool_timeout_seconds=0.2).tool("sleep", "5").state == "timeout"
