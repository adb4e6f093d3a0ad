# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._path.model import (
    Answer,
    Target,
    reason_of,
    smaller_sizes,
)


def test_ping_counts_the_payload() -> None:
    target = Target("ens1", "198.51.100.2", 4200)
    assert target.argv(4200, 1) == ("ping", "-n", "-M", "do", "-c", "1", "-W", "1", "-s", "4172", "-I", "ens1",
                                    "198.51.100.2")


def test_sizes_below() -> None:
    assert smaller_sizes(4200) == [4096, 2048, 1500, 1400, 1280, 576, 84]
    assert smaller_sizes(84) == []


@pytest.mark.parametrize(("text", "reason"), [
    ("ping: local error: message too long, mtu=1500", "this end's MTU is 1500"),
    ("ping: local error: Message too long, mtu: 1500", "this end's MTU is 1500"),
    ("ping: sendmsg: Message too long", "this end's MTU is smaller"),
    ("From 198.51.100.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)",
     "198.51.100.1 says that the next link's MTU is 1500"),
    ("ping: SO_BINDTODEVICE nope: No such device", "No such device"),
    ("From 198.51.100.1 icmp_seq=1 Destination Host Unreachable", "Destination Host Unreachable"),
    ("1 packets transmitted, 0 received, 100% packet loss, time 0ms", ""),
])
def test_reasons(text: str, reason: str) -> None:
    assert reason_of(text) == reason


def test_an_answer_keeps_both_ends() -> None:
    target = Target("ens1", "198.51.100.2", 4200, "198.51.100.1", "node2", "ens2", 1)
    assert Answer(target, False, 1500, "x").as_dict() == {
        "interface": "ens1", "address": "198.51.100.2", "size_bytes": 4200, "source": "198.51.100.1",
        "peer": "node2", "peer_interface": "ens2", "rail": 1, "passed": False, "largest_bytes": 1500, "reason": "x",
    }
