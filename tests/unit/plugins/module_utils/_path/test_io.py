# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._path.io import probe
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._path.model import Target


class Network:
    """Answers as ping would; ``mtus`` by address. The first ``lost`` packets get lost."""

    def __init__(self, mtus: dict[str, int], lost: int = 0, stderr: str = "") -> None:
        self.mtus, self.lost, self.stderr, self.calls = mtus, lost, stderr, 0

    def __call__(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        self.calls += 1
        words = tuple(argv)
        size = int(words[words.index("-s") + 1]) + 28
        if self.lost:
            self.lost -= 1
            return Result(words, "failed", 1, "1 packets transmitted, 0 received")
        if size <= self.mtus.get(words[-1], 0):
            return Result(words, "ok", 0)
        return Result(words, "failed", 1, "1 packets transmitted, 0 received", self.stderr)


def targets(*addresses: str) -> list[Target]:
    return [Target("ens1", address, 4200) for address in addresses]


def test_paths_that_carry_their_size_are_asked_once() -> None:
    network = Network({"198.51.100.2": 4200, "198.51.100.3": 9000})
    answers = probe(targets("198.51.100.2", "198.51.100.3"), Machine(run=network))
    assert [(answer.passed, answer.largest_bytes) for answer in answers] == [(True, 4200)] * 2
    assert network.calls == 2


def test_a_path_that_is_too_small_is_named_with_what_passes() -> None:
    network = Network({"198.51.100.2": 4200, "198.51.100.3": 1500})
    good, small, dead = probe(targets("198.51.100.2", "198.51.100.3", "198.51.100.4"), Machine(run=network))
    assert good.passed
    assert (small.passed, small.largest_bytes, small.reason) == (False, 1500, "")
    assert (dead.passed, dead.largest_bytes) == (False, 0)


def test_one_lost_packet_convicts_no_path() -> None:
    (answer,) = probe(targets("198.51.100.2"), Machine(run=Network({"198.51.100.2": 4200}, lost=1)))
    assert answer.passed


def test_a_clear_reason_needs_no_second_packet() -> None:
    network = Network({"198.51.100.2": 1500}, stderr="ping: sendmsg: Message too long")
    (answer,) = probe(targets("198.51.100.2"), Machine(run=network))
    assert answer.reason == "this end's MTU is smaller" and network.calls == 1 + 7


@pytest.mark.parametrize("result", [
    Result(("ping",), "missing"),
    Result(("ping",), "failed", 2, "", "ping: socket: Operation not permitted\nping: => missing cap_net_raw+p"),
    Result(("ping",), "failed", 2, "", "Usage: ping [options]"),
])
def test_a_tool_that_cannot_ask_is_no_finding_about_a_path(result: Result) -> None:
    with pytest.raises(AidcError, match="ping"):
        probe(targets("198.51.100.2"), Machine(run=lambda argv, timeout_seconds: result))


def test_no_targets_no_work() -> None:
    assert probe([], Machine(run=Network({}))) == []
