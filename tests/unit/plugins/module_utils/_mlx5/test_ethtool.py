# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import ethtool

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
# As ethtool 6.14 prints them (layout of a virtio port; the values are mlx5's).
RINGS = """\
Ring parameters for eth0:
Pre-set maximums:
RX:			8192
RX Mini:		n/a
RX Jumbo:		n/a
TX:			8192
TX push buff len:	n/a
Current hardware settings:
RX:			1024
RX Mini:		n/a
RX Jumbo:		n/a
TX:			512
RX Buf Len:		n/a
TX Push:		off
RX Push:		off
TX push buff len:	n/a
"""
CHANNELS = """\
Channel parameters for eth0:
Pre-set maximums:
RX:		{rx}
TX:		{rx}
Other:		n/a
Combined:	{combined}
Current hardware settings:
RX:		{rx}
TX:		{rx}
Other:		n/a
Combined:	{combined}
"""
PAUSE = "Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n\n"


def test_text() -> None:
    assert ethtool.from_text("g", RINGS) == (
        {"rx_ring_entries": 1024, "tx_ring_entries": 512}, {"rx_ring_entries": 8192, "tx_ring_entries": 8192})
    assert ethtool.from_text("l", CHANNELS.format(rx="n/a", combined=63)) == ({"channels": 63}, {"channels": 63})
    # A driver without combined channels, as veth: no such value.
    assert ethtool.from_text("l", CHANNELS.format(rx=2, combined="n/a")) == ({}, {})
    assert ethtool.from_text("a", PAUSE) == ({"pause_rx": True, "pause_tx": False}, {})


def test_json() -> None:
    rings = '[ {"ifname": "eth0", "rx-max": 8192, "tx-max": 8192, "rx": 1024, "tx": 1024, "tx-push": false} ]'
    assert ethtool.from_json("g", rings) == (
        {"rx_ring_entries": 1024, "tx_ring_entries": 1024}, {"rx_ring_entries": 8192, "tx_ring_entries": 8192})
    pause = '[ {"ifname": "eth0", "autonegotiate": false, "rx": true, "tx": false} ]'
    assert ethtool.from_json("a", pause) == ({"pause_rx": True, "pause_tx": False}, {})
    assert ethtool.from_json("l", '[{"ifname": "eth0"}]') == ({}, {})


@pytest.mark.parametrize("text", ["", "garbage", "[ ]", "{}", "[1]", '[{"rx": 1}]', '[{"ifname": "a", "rx": "many"}]',
                                  '[{"ifname": "a", "rx": true}]'])
def test_json_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ethtool.from_json("g", text)


@pytest.mark.parametrize(("letter", "text"), [
    ("g", ""), ("g", "\x00garbage: 1"), ("g", PAUSE), ("a", RINGS), ("l", RINGS), ("g", RINGS[:80]),
    ("g", RINGS.replace("1024", "many")), ("a", PAUSE.replace("on", "maybe")),
])
def test_text_that_is_none(letter: str, text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ethtool.from_text(letter, text)


def test_an_option_without_json() -> None:
    assert ethtool.no_json("ethtool: bad command line argument(s)\nFor more information run ethtool -h\n")
    assert not ethtool.no_json("netlink error: Operation not supported")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")
def test_field_sample() -> None:
    assert ethtool.from_text("a", (SAMPLES / "ethtool_a-1.txt").read_text(encoding="utf-8")) == (
        {"pause_rx": True, "pause_tx": False}, {})
    with pytest.raises(ValueError, match="no line"):
        ethtool.from_text("a", (SAMPLES / "ethtool_S-1.txt").read_text(encoding="utf-8"))
