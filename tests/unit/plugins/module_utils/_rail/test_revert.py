# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armed revert of rail_network has, for each owner, and that it gives the rails back."""
from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import io as revert_io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.model import FOLDER

from tests.unit.plugins.fake import ok
from tests.unit.plugins.module_utils._rail.case import REQUEST, WANTS, run
from tests.unit.plugins.rail_node import RailNode

ALLOWED = dataclasses.replace(REQUEST, allow_management=True, revert_seconds=60)
OTHER = dataclasses.replace(ALLOWED, rails=(
    dataclasses.replace(WANTS[0], address="198.51.100.77/24", mtu_bytes=9000), WANTS[1]))


@pytest.fixture
def managed(node: RailNode) -> RailNode:
    """A configured node whose rail 0 is the way to it."""
    run(node)
    node.default_device = "rail0"
    node.override[("systemd-run",)] = lambda call: ok()
    plain = node.run

    def answer(argv: t.Sequence[str], seconds: float) -> Result:
        call = tuple(argv)
        if call[0] == "systemctl" and call[2].startswith("aidc-revert-"):
            return ok("active\n")
        if call[:3] in (("ip", "link", "set"), ("ip", "addr", "replace")) or call[2:4] == ("route", "replace"):
            return ok()
        if call[:3] == ("nmcli", "general", "reload") or call[:3] == ("nmcli", "connection", "reload"):
            return ok()
        if call[:2] == ("nmcli", "--wait") and "ifname" in call:
            return plain(call[:-2], seconds)
        return plain(argv, seconds)

    node.run = answer  # type: ignore[method-assign,assignment]
    return node


def test_without_the_option_it_is_refused(managed: RailNode) -> None:
    with pytest.raises(AidcError, match="carries the default route.*allow_management: true.*Nothing was changed"):
        run(managed, dataclasses.replace(OTHER, allow_management=False))


def test_the_old_files_address_and_mtu_are_back(managed: RailNode) -> None:
    before, live = managed.files(), dataclasses.replace(managed.live["rail0"])
    result = run(managed, OTHER)
    assert result["armed"]["state"] == "armed" and managed.live["rail0"].addresses == ["198.51.100.77/24"]
    (record,) = revert_io.records(managed.machine())
    assert ("ip", "addr", "replace", "198.51.100.1/24", "dev", "rail0") in record.links
    assert revert_io.undo_now(managed.machine(), record).got == "restored on the host"
    assert {path: text for path, text in managed.files().items() if "revert" not in path} == before
    assert managed.live["rail0"].addresses == live.addresses and managed.live["rail0"].mtu == live.mtu
    assert run(managed, ALLOWED)["changed"] is False


def test_a_sysctl_gets_its_old_value(managed: RailNode) -> None:
    path = "/proc/sys/net/ipv4/conf/rail0/rp_filter"
    managed.put(path, "1\n")
    run(managed, ALLOWED)
    (record,) = revert_io.records(managed.machine())
    assert ("write", path, "1") in record.commands


def test_the_other_rail_alone_arms_nothing(managed: RailNode) -> None:
    managed.put("/proc/sys/net/ipv4/conf/rail1/rp_filter", "1\n")
    result = run(managed, ALLOWED)
    assert (result["changed"], result["armed"]) == (True, None)


def test_check_mode_never_arms(managed: RailNode) -> None:
    assert run(managed, OTHER, True)["armed"] is None and revert_io.records(managed.machine()) == []


def test_what_was_undone_is_told_by_the_next_run(managed: RailNode) -> None:
    run(managed, OTHER)
    (record,) = revert_io.records(managed.machine())
    data = {**dataclasses.asdict(record), "state": "undone", "undone_at": "2026-11-30T12:00:00Z"}
    managed.put(f"{FOLDER}/{record.id}.json", json.dumps(data))
    for check_mode in (True, False):
        with pytest.raises(AidcError, match="an earlier run of rail_network: got the change was undone on the host"):
            run(managed, OTHER, check_mode)
    assert run(managed, OTHER)["changed"] is False
