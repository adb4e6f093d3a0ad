# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import CONFIG_FILE, MAP_MISMATCH
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import Step

from tests.unit.plugins.fake import ok
from tests.unit.plugins.holders import process
from tests.unit.plugins.imex_node import CHANNEL, VERSION, settled, tray


def test_one_read_of_a_node(tmp_path: Path) -> None:
    node = tray(tmp_path, 1)
    node.put(CHANNEL, "")
    found = io.gather(node.machine())
    assert (found.unit.active, found.unit.enabled, found.unit.started_at) == ("inactive", "disabled", 0)
    assert (found.nodes_file.text, found.config_file.mode) == (None, 0o644)
    assert found.addresses == {"192.0.2.1"}, "not that of lo, which every node has"
    assert (found.driver, [one.version for one in found.packages]) == (VERSION, [VERSION])
    assert (found.strays, found.channels, found.problems) == ((), (CHANNEL,), ())


def test_daemons_outside_of_the_unit(tmp_path: Path) -> None:
    node = tray(tmp_path, 1)
    process(node.root, 700, "nvidia-imex", cgroup="/user.slice")
    process(node.root, 701, "nvidia-imex", cgroup="/system.slice/nvidia-imex.service")
    process(node.root, 702, "nvidia-imex-ct", cgroup="/user.slice")
    assert io.gather(node.machine()).strays == ("nvidia-imex of pid 700",)


def test_tools_that_are_missing_are_problems(tmp_path: Path) -> None:
    node = tray(tmp_path, 1)
    for name in ("systemctl", "ip"):
        node.override[(name,)] = lambda call: Result((), "missing")
    assert [one.object.split()[0] for one in io.gather(node.machine()).problems] == ["systemctl", "ip"]


def test_a_write_keeps_the_mode(tmp_path: Path) -> None:
    node = tray(tmp_path, 1)
    io.apply(node.machine(), Step(("write", CONFIG_FILE), "", text="A=1\n", mode=0o600))
    path = node.root / CONFIG_FILE.lstrip("/")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("A=1\n", 0o600)


def test_words_of_json_that_are_not_known_are_looked_up_in_the_table(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    trays[1].change(list="192.0.2.1\n")
    bad: list[Problem] = []
    found = io.domain(trays[0].machine(), bad)
    assert found is not None and found.links[0, 1] == MAP_MISMATCH and bad == []
    trays[0].override[("nvidia-imex-ctl", "-N")] = lambda call: ok("" if call[-1] == "-N" else JSON)
    found = io.domain(trays[0].machine(), bad)
    assert found is not None and found.links[0, 0] == "MAPS", "better than nothing, and not connected"
    assert bad == []


JSON = '{"nodes": {"0": {"status": "READY", "host": "a", "connections": {"0": {"status": "MAPS"}}}}, "status": "UP"}'
