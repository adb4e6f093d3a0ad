# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import io, plan, revert
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Node, Request, Step, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.tuning import Have
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._networkd.model import PENDING_FILE
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import io as revert_io

from tests.unit.plugins.fake import FakeNode, ok

FILE = "/etc/systemd/network/20-rail0.network.d/50-aidc-mtu.conf"


def planned(node: FakeNode, **fields: t.Any) -> tuple[Request, Node, list[Step]]:
    request = Request(tuple(Want(rail.pci, 4200) for rail in node.rails), allow_management=True, **fields)
    found = io.gather(node.machine(), request)
    assert plan.check(request, found) == []
    return request, found, plan.plan(request, found)


@pytest.fixture
def one_port(node: FakeNode) -> FakeNode:
    """The first rail is the way to the host."""
    node.default_device = "rail0"
    return node


def test_a_rail_that_is_no_way_to_the_host_needs_no_undo(node: FakeNode) -> None:
    assert revert.undo(*planned(node)) is None


def test_files_then_the_reload_then_the_links(one_port: FakeNode) -> None:
    found = revert.undo(*planned(one_port))
    assert found is not None
    assert found.files == (PENDING_FILE, FILE, FILE.replace("rail0", "rail1"), PENDING_FILE)
    assert (found.commands, found.netdevs) == ((("networkctl", "reload"),), ("rail0", "rail1"))


def test_only_the_other_port_is_changed(one_port: FakeNode) -> None:
    request, found, steps = planned(one_port, persistent=False)
    assert revert.undo(request, found, [step for step in steps if step.pci == "0002:03:00.0"]) is None
    assert revert.undo(request, found, steps) is not None


def test_settings_get_their_old_values(one_port: FakeNode) -> None:
    request, found, _steps = planned(one_port, persistent=False)
    settings: dict[str, t.Any] = {"rx_ring_entries": 8192, "pause_rx": False, "channels": 32}
    have: dict[str, t.Any] = {"rx_ring_entries": 1024, "pause_rx": True, "channels": 32}
    request = dataclasses.replace(request, ports=(Want("0000:03:00.0", None, None, settings),))
    found = dataclasses.replace(found, settings={"0000:03:00.0": Have(have)})
    undo = revert.undo(request, found, plan.plan(request, found))
    assert undo is not None and undo.commands == (
        ("ethtool", "-G", "rail0", "rx", "1024"), ("ethtool", "-A", "rail0", "rx", "on"))


def test_the_hint_and_what_is_refused_in_any_case(one_port: FakeNode) -> None:
    request = Request((Want("0000:03:00.0", 4200),))
    with pytest.raises(AidcError, match="carries the default route.*or allow_management: true"):
        configure(one_port.machine(), request, True)
    one_port.link_fields["rail0"] = {"master": "br0", "linkinfo": {"info_slave_kind": "bridge"}}
    with pytest.raises(AidcError, match=r"got a port that is a member of the bridge br0, .*\(take it out") as caught:
        configure(one_port.machine(), dataclasses.replace(request, allow_management=True), True)
    assert "allow_management" not in str(caught.value)


def test_a_whole_call(one_port: FakeNode) -> None:
    """Armed before the first write, shown in the result, and never in check mode or without a controller."""
    one_port.override[("systemd-run",)] = lambda call: ok()
    plain = one_port.run

    def run(argv: t.Sequence[str], seconds: float) -> Result:
        if argv[0] == "systemctl" and str(argv[2]).startswith("aidc-revert-"):
            return ok("active\n")
        if tuple(argv[:2]) == ("ip", "-j") and argv[-1] == "all":
            return ok("[]")
        return plain(argv, seconds)

    one_port.run = run  # type: ignore[method-assign,assignment]
    for name in ("rail0", "rail1"):
        one_port.link_fields[name] = {"mtu": 1500}
    base = Request(tuple(Want(rail.pci, 4200) for rail in one_port.rails), allow_management=True)
    armed = dataclasses.replace(base, revert_seconds=60)
    assert configure(one_port.machine(), armed, True)["armed"] is None
    assert not [call for call in one_port.calls if call[0] == "systemd-run"]
    result = configure(one_port.machine(), armed, False)
    assert (result["armed"]["state"], result["armed"]["seconds"]) == ("armed", 60)
    calls = [call[:2] for call in one_port.calls]
    assert calls.index(one_port.calls[[call[0] for call in one_port.calls].index("systemd-run")][:2]) < calls.index(
        ("ip", "link"))
    # The controller of the next run sees it, and cancels it.
    again = configure(one_port.machine(), armed, False)
    assert (again["changed"], again["armed"]["id"]) == (False, result["armed"]["id"])
    revert_io.cancel(one_port.machine(), "mlx5_port")
    one_port.put("/sys/class/net/rail0/mtu", "1500\n")
    assert configure(one_port.machine(), base, False)["armed"] is None
