# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Request, Want

from tests.unit.plugins.fake import DEVINFO, FakeNode, failed, ok

DROPIN = "/etc/systemd/network/20-rail0.network.d/50-aidc-mtu.conf"


def request(node: FakeNode, mtu: int = 4200, **fields: t.Any) -> Request:
    return Request(tuple(Want(rail.pci, mtu) for rail in node.rails), **fields)


def mutations(node: FakeNode) -> list[tuple[str, ...]]:
    return [call for call in node.calls if call[:3] == ("ip", "link", "set") or call == ("networkctl", "reload")]


def test_converges_and_then_changes_nothing(node: FakeNode) -> None:
    first = configure(node.machine(), request(node), False)
    assert first["changed"]
    assert first["before"][0] == {"pci": "0000:03:00.0", "mtu_bytes": 1500, "saved_mtu_bytes": None}
    assert first["after"][0] == {"pci": "0000:03:00.0", "mtu_bytes": 4200, "saved_mtu_bytes": 4200}
    assert [port["rdma_mtu_bytes"] for port in first["ports"]] == [4096, 4096]
    assert node.get(DROPIN).endswith("[Link]\nMTUBytes=4200")
    assert not (node.root / "run/aidc/networkd-reload.pending").exists()
    node.calls.clear()
    second = configure(node.machine(), request(node), False)
    assert (second["changed"], second["commands"], mutations(node)) == (False, [], [])
    assert second["before"] == second["after"]


@pytest.mark.parametrize("prepare", ["fresh", "drifted", "saved", "configured"])
@pytest.mark.parametrize("fields", [{}, {"persistent": False}, {"runtime": False}, {"verify_rdma_mtu": False}])
def test_check_mode_equals_the_run(node: FakeNode, prepare: str, fields: dict[str, t.Any]) -> None:
    if prepare != "fresh":
        configure(node.machine(), request(node), False)
    if prepare == "drifted":
        node.put("/sys/class/net/rail1/mtu", "1500\n")
    if prepare == "saved":
        (node.root / DROPIN[1:]).unlink()
    before = node.files()
    node.calls.clear()
    predicted = configure(node.machine(), request(node, **fields), True)
    assert node.files() == before
    assert mutations(node) == []
    assert not (node.root / "run/lock").exists() or prepare != "fresh"
    real = configure(node.machine(), request(node, **fields), False)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key


def test_one_value_changed_behind_our_back_is_put_back_alone(node: FakeNode) -> None:
    configure(node.machine(), request(node), False)
    node.put("/sys/class/net/rail1/mtu", "1500\n")
    result = configure(node.machine(), request(node), False)
    assert result["commands"] == [["ip", "link", "set", "dev", "rail1", "mtu", "4200"]]
    assert result["diff"] == {
        "before": {rail.pci: {"pci": rail.pci, "mtu_bytes": mtu, "saved_mtu_bytes": 4200}
                   for rail, mtu in zip(node.rails, (4200, 1500))},
        "after": {rail.pci: {"pci": rail.pci, "mtu_bytes": 4200, "saved_mtu_bytes": 4200} for rail in node.rails},
    }


class Killed(BaseException):
    """Stands for a signal that no code can catch."""


def kill_at(node: FakeNode, step: int, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """Die before or after the step with this number."""
    original, seen = io._carry_out, [0]

    def carry_out(*arguments: t.Any) -> t.Any:
        if seen[0] == step and not after:
            raise Killed
        result = original(*arguments)
        if seen[0] == step and after:
            raise Killed
        seen[0] += 1
        return result

    monkeypatch.setattr(io, "_carry_out", carry_out)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(7))
def test_killed_at_any_step_the_next_run_converges(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, step: int, after: bool
) -> None:
    assert len(configure(node.machine(), request(node), True)["commands"]) == 7
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(node, step, patch, after)
        configure(node.machine(), request(node), False)
    reloaded = ("networkctl", "reload") in node.calls
    result = configure(node.machine(), request(node), False)
    assert [entry["mtu_bytes"] for entry in result["after"]] == [4200, 4200]
    assert [entry["saved_mtu_bytes"] for entry in result["after"]] == [4200, 4200]
    # networkd has read the files: in the run that was killed or in this one.
    assert reloaded or ["networkctl", "reload"] in result["commands"]
    assert not (node.root / "run/aidc/networkd-reload.pending").exists()
    assert configure(node.machine(), request(node), False)["changed"] is False


@pytest.mark.parametrize("answer", [
    Result((), "missing"), Result((), "timeout", None, "", "no answer within 1 s"), ok("garbage"), failed(1, "broken"),
])
def test_without_the_rdma_tool_nothing_is_written(node: FakeNode, answer: Result) -> None:
    node.override[("ibv_devinfo",)] = lambda call: answer
    before = node.files()
    for check_mode in (True, False):
        with pytest.raises(AidcError, match=r"ibv_devinfo: got .* Nothing was changed\.") as caught:
            configure(node.machine(), request(node), check_mode)
        assert caught.value.as_result()["changed"] is False
    assert node.files() == before
    assert mutations(node) == []
    assert configure(node.machine(), request(node, verify_rdma_mtu=False), False)["changed"]


def test_a_tool_that_reports_success_without_effect(node: FakeNode) -> None:
    node.override[("ip", "link", "set", "dev", "rail1")] = lambda call: ok()
    with pytest.raises(AidcError) as caught:
        configure(node.machine(), request(node), False)
    assert "netdev MTU of 0002:03:00.0: got 1500, wanted 4200" in str(caught.value)
    assert "Done before the error: ip link set dev rail0 mtu 4200" in str(caught.value)
    assert caught.value.as_result()["changed"] is True


def test_an_rdma_mtu_that_does_not_follow(node: FakeNode) -> None:
    node.override[("ibv_devinfo",)] = lambda call: ok("".join(
        DEVINFO.format(hca=rail.rdma, mtu="1024 (3)") for rail in node.rails))
    with pytest.raises(AidcError, match="RDMA MTU of 0000:03:00.0: got 1024, wanted 4096"):
        configure(node.machine(), request(node), False)
    # It holds with nothing left to do as well, in check mode too.
    for check_mode in (False, True):
        with pytest.raises(AidcError, match="RDMA MTU of 0000:03:00.0: got 1024, wanted 4096"):
            configure(node.machine(), request(node), check_mode)


def test_networkd_puts_the_value_back(node: FakeNode) -> None:
    def reload(call: tuple[str, ...]) -> Result:
        node.put("/sys/class/net/rail0/mtu", "9000\n")
        return ok()

    node.override[("networkctl", "reload")] = reload
    with pytest.raises(AidcError, match="netdev MTU of 0000:03:00.0: got 9000, wanted 4200"):
        configure(node.machine(), request(node), False)


def test_a_device_that_refuses_the_value_saves_nothing(node: FakeNode) -> None:
    node.override[("ip", "link", "set")] = lambda call: failed(2, "Error: mtu greater than device maximum.")
    before = node.files()
    with pytest.raises(AidcError, match=r"mtu greater than device maximum.*Nothing was changed"):
        configure(node.machine(), request(node), False)
    assert node.files() == before


def test_excluded_port_and_too_large_a_value_change_nothing(node: FakeNode) -> None:
    node.default_device = "rail0"
    node.link_fields["rail1"] = {"master": "br0", "linkinfo": {"info_slave_kind": "bridge"}}
    with pytest.raises(AidcError) as caught:
        configure(node.machine(), request(node, 12000), False)
    message = str(caught.value)
    assert "0000:03:00.0 (rail0): got a port that carries the default route" in message
    assert "0002:03:00.0 (rail1): got a port that is a member of the bridge br0" in message
    assert "got MTU 12000, wanted at most 9978, the device's maximum" in message
    assert mutations(node) == []
