# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import tuning_io

from tests.unit.plugins.fake import FakeNode, failed, ok
from tests.unit.plugins.fake_tuning import Tuned

A, B = "0000:03:00.0", "0002:03:00.0"
ALL = {"rx_ring_entries": 1, "tx_ring_entries": 1, "channels": 1, "pause_rx": True, "pause_tx": True,
       "max_read_request_bytes": 512}


def gather(node: FakeNode, settings: dict[str, object] | None = None) -> dict[str, tuning_io.Have]:
    asked = settings if settings is not None else ALL
    return tuning_io.gather(node.machine(), {A: ("rail0", "up", asked), B: ("rail1", None, asked)})  # type: ignore[dict-item]


@pytest.mark.parametrize("letters", ["", "a", "ga", "gal"])
def test_json_where_the_version_has_it_and_text_otherwise(node: FakeNode, letters: str) -> None:
    Tuned(node, letters)
    found = gather(node)
    assert [have.problems for have in found.values()] == [(), ()]
    assert found[A].values == {"admin_state": "up", "rx_ring_entries": 1024, "tx_ring_entries": 1024, "channels": 63,
                               "pause_rx": True, "pause_tx": True, "max_read_request_bytes": 512}
    assert found[B].most == {"rx_ring_entries": 8192, "tx_ring_entries": 8192, "channels": 63}
    # Each option is asked in vain once, not once per port.
    assert len(node.calls) == 1 + 2 * 3 + (3 - len(letters))


def test_only_what_is_asked_for_is_read(node: FakeNode) -> None:
    Tuned(node)
    gather(node, {})
    gather(node, {"admin_state": "up"})
    assert node.calls == []
    gather(node, {"pause_rx": False})
    assert {call[2] for call in node.calls} == {"-a"}


@pytest.mark.parametrize(("answer", "got", "hint"), [
    (Result((), "missing"), "the program is not installed", "install the package ethtool"),
    (Result((), "timeout", None, "", "no answer within 1 s"), "no answer within 1 s", "dmesg"),
    (failed(1, "netlink error: Operation not supported"), "netlink error: Operation not supported", "a VF"),
    (ok("\x00garbage"), "output that cannot be read", "run it by hand"), (ok(""), "output that cannot be read", ""),
    (ok('[{"ifname": "rail0", "rx": [1]}]'), "output that cannot be read", ""),
])
def test_a_tool_that_does_not_work(node: FakeNode, answer: Result, got: str, hint: str) -> None:
    Tuned(node)
    node.override[("ethtool",)] = lambda argv: answer
    problem = gather(node, {"pause_rx": False})[A].problems[0]
    assert got in problem.got
    assert hint in problem.hint
    assert problem.object == "ethtool -a rail0"


def test_config_space_and_setpci(node: FakeNode) -> None:
    Tuned(node)
    path = node.root / f"sys/bus/pci/devices/{A}/config"
    path.write_bytes(path.read_bytes()[:64])
    (node.root / f"sys/bus/pci/devices/{B}/config").unlink()
    node.override[("setpci",)] = lambda argv: Result(argv, "missing")
    found = gather(node, {"max_read_request_bytes": 512})
    assert [problem.got for problem in found[A].problems] == [
        "only 64 bytes of configuration space; root sees all", "the program is not installed"]
    assert found[A].problems[1].hint == "install the package pciutils"
    assert found[B].problems[0].got == "No such file or directory"
