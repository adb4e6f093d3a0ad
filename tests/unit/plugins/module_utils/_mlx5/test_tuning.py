# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import tuning
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.tuning import Have

PCI = "0000:03:00.0"
VALUES: dict[str, t.Any] = {
    "rx_ring_entries": 1024, "tx_ring_entries": 1024, "channels": 63, "pause_rx": True, "pause_tx": True,
    "max_read_request_bytes": 512, "admin_state": "down"}
HAVE = Have(VALUES, {"rx_ring_entries": 8192, "tx_ring_entries": 8192, "channels": 63})
WANT: dict[str, t.Any] = {
    "rx_ring_entries": 8192, "tx_ring_entries": 4096, "channels": 32, "pause_rx": False, "pause_tx": False,
    "max_read_request_bytes": 4096, "admin_state": "up"}


def commands(settings: dict[str, t.Any], have: Have = HAVE) -> list[str]:
    return [" ".join(command) for command, _disruptive, _why in tuning.plan(PCI, "rail0", settings, have)]


def test_golden_plan() -> None:
    assert tuning.plan(PCI, "rail0", WANT, HAVE) == [
        (("ethtool", "-G", "rail0", "rx", "8192", "tx", "4096"), "link",
         "rx_ring_entries is 1024, tx_ring_entries is 1024"),
        (("ethtool", "-L", "rail0", "combined", "32"), "link", "channels is 63"),
        (("ethtool", "-A", "rail0", "rx", "off", "tx", "off"), "none", "pause_rx is True, pause_tx is True"),
        (("setpci", "-s", PCI, "CAP_EXP+08.w=5000:f000"), "none", "max_read_request_bytes is 512"),
        (("ip", "link", "set", "dev", "rail0", "up"), "link", "admin_state is down"),
    ]


def test_nothing_to_do_and_nothing_asked() -> None:
    assert commands(VALUES) == commands({}) == []
    assert tuning.check("x", {}, Have()) == tuning.verify("x", {}, HAVE) == []


@pytest.mark.parametrize(("key", "value", "command"), [
    ("rx_ring_entries", 2048, "ethtool -G rail0 rx 2048"), ("tx_ring_entries", 64, "ethtool -G rail0 tx 64"),
    ("channels", 1, "ethtool -L rail0 combined 1"), ("pause_rx", False, "ethtool -A rail0 rx off"),
    ("pause_tx", False, "ethtool -A rail0 tx off"), ("admin_state", "up", "ip link set dev rail0 up"),
    ("max_read_request_bytes", 1024, f"setpci -s {PCI} CAP_EXP+08.w=3000:f000"),
])
def test_one_difference_is_one_command(key: str, value: t.Any, command: str) -> None:
    assert commands({**VALUES, key: value}) == [command]
    assert commands({key: value}) == [command]


def test_which_tools_are_asked() -> None:
    assert tuning.letters(WANT) == ["g", "l", "a"]
    assert tuning.letters({"pause_tx": False, "admin_state": "up"}) == ["a"]
    assert tuning.letters({"max_read_request_bytes": 512}) == []


@pytest.mark.parametrize(("key", "value", "text"), [
    ("rx_ring_entries", 16384, "got 16384, wanted 64 to 8192, the device's limits (look at ethtool -g)"),
    ("tx_ring_entries", 32, "got 32, wanted 64 to 8192"),
    ("rx_ring_entries", 1000, "got 1000, wanted a power of two (mlx5 would round it up to 1024)"),
    ("channels", 64, "got 64, wanted 1 to 63, the device's limits (look at ethtool -l)"),
    ("channels", 0, "got 0, wanted 1 to 63"),
])
def test_beyond_the_device(key: str, value: int, text: str) -> None:
    found = tuning.check("rail", {key: value}, HAVE)
    assert [text in problem.text() for problem in found] == [True]


def test_a_setting_that_the_driver_has_not() -> None:
    found = tuning.check("rail", {"channels": 4}, Have())
    assert "channels of rail: got no such setting in this driver" in found[0].text()
    broken = Problem("ethtool -l rail0", "garbage", "its output")
    assert tuning.check("rail", {"channels": 4}, Have(problems=(broken,))) == [broken]


def test_verify_names_each_difference() -> None:
    found = tuning.verify("rail", {"channels": 4, "pause_rx": True}, HAVE)
    assert [problem.text().split(" (")[0] for problem in found] == ["channels of rail: got 63, wanted 4"]
