# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result, run
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Step

from tests.unit.plugins.fake import DEVINFO, FakeNode, failed, ok


def test_gather(node: FakeNode) -> None:
    node.put("/etc/systemd/network/20-rail0.network.d/10-site.conf", "[Link]\nMTUBytes=1500\n")
    found = io.gather(node.machine())
    assert found.problems == ()
    first, second = (device.ports[0] for device in found.devices)
    assert (first.max_mtu_bytes, first.rdma_mtu_bytes, first.saved_mtu_bytes) == (9978, 1024, 1500)
    assert first.saved_mtu_file == "/etc/systemd/network/20-rail0.network.d/10-site.conf"
    assert (second.network_file, second.saved_mtu_bytes) == ("/etc/systemd/network/20-rail1.network", None)
    assert (first.excluded, second.excluded) == (None, None)


def test_uses_reach_the_port(node: FakeNode) -> None:
    node.default_device = "rail1"
    assert io.gather(node.machine()).devices[1].ports[0].excluded == "carries the default route"


def test_a_node_without_mlx5_does_not_ask_the_tool(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    assert io.gather(node.machine()).as_data() == {"devices": [], "problems": []}
    assert ("ibv_devinfo",) not in node.calls


def test_firmware_from_the_tool_where_sysfs_has_none(node: FakeNode) -> None:
    for name in ("fw_ver", "board_id"):
        (node.root / "sys/class/infiniband/mlx5_0" / name).unlink()
    device = io.gather(node.machine()).devices[0]
    assert (device.firmware_version, device.psid) == ("28.39.1002", "MT_0000000834")


@pytest.mark.parametrize(("answer", "got", "hint"), [
    (Result((), "missing"), "the program is not installed", "ibverbs-utils"),
    (Result((), "timeout", None, "", "no answer within 1 s"), "no answer within 1 s", "dmesg"),
    (failed(255, "Failed to get IB devices list"), "exit status 255: Failed to get IB devices list", "/dev/infiniband"),
    (ok("\x00garbage\x01"), "output that cannot be read (no hca_id line): ", "rdma-core"),
    (ok(""), "output that cannot be read", "rdma-core"),
])
def test_a_tool_that_does_not_work(node: FakeNode, answer: Result, got: str, hint: str) -> None:
    node.override[("ibv_devinfo",)] = lambda call: answer
    found = io.gather(node.machine())
    assert [device.ports[0].rdma_mtu_bytes for device in found.devices] == [None, None]
    assert len(found.problems) == 1
    assert got in found.problems[0].text()
    assert hint in found.problems[0].hint


def test_a_device_that_the_tool_does_not_list(node: FakeNode) -> None:
    node.override[("ibv_devinfo",)] = lambda call: ok(DEVINFO.format(hca="mlx5_0", mtu="1024 (3)"))
    found = io.gather(node.machine())
    assert [device.ports[0].rdma_mtu_bytes for device in found.devices] == [1024, None]
    assert "rocep3s0f0: got not in the output of ibv_devinfo" in found.problems[0].text()
    assert found.rdma_problems == ()


def test_a_real_tool_that_hangs_and_ignores_term(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "ibv_devinfo"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    infos, problems = io.read_devinfo(Machine(run=run, tool_timeout_seconds=0.3))
    assert infos == {}
    assert problems[0].got == "no answer within 0.3 s; ended by us"


def test_apply_says_what_was_done_before_a_step_failed(node: FakeNode) -> None:
    node.override[("networkctl", "reload")] = lambda call: failed(1, "no bus")
    steps = [Step(("write", "/etc/a"), "none", "x", text="text"), Step(("remove", "/etc/a"), "none", "x"),
             Step(("networkctl", "reload"), "link", "files changed")]
    with pytest.raises(AidcError) as caught:
        io.apply(node.machine(), steps)
    assert caught.value.done == [["write", "/etc/a"], ["remove", "/etc/a"]]
    assert "networkctl reload: got exit status 1: no bus, wanted success (files changed)" in str(caught.value)


def test_a_write_that_fails(node: FakeNode) -> None:
    node.put("/etc/a", "a file, no folder")
    with pytest.raises(AidcError, match="write to succeed"):
        io.apply(node.machine(), [Step(("write", "/etc/a/b"), "none", "x")])


def test_a_link_that_does_not_come_back_after_the_reload(node: FakeNode) -> None:
    node.admin_state["rail0"] = "failed"
    with pytest.raises(AidcError) as caught:
        io.apply(node.machine(), [Step(("networkctl", "reload"), "link", "x", wait_for=("rail0",))])
    assert caught.value.done == [["networkctl", "reload"]]
    assert "rail0 failed" in str(caught.value)
