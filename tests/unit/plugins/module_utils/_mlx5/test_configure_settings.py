# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mlx5_port from end to end for the settings beside the MTU, for bonds and for what is refused."""
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5 import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Request, Want

from tests.unit.plugins.fake import FakeNode, failed, ok
from tests.unit.plugins.fake_tuning import Tuned, config

A = "0000:03:00.0"
SETTINGS: dict[str, t.Any] = {
    "rx_ring_entries": 8192, "tx_ring_entries": 8192, "channels": 32, "pause_rx": False, "pause_tx": False,
    "max_read_request_bytes": 4096, "admin_state": "up"}


@pytest.fixture
def tuned(node: FakeNode) -> Tuned:
    return Tuned(node)


def request(tuned: Tuned, settings: dict[str, t.Any] | None = None, **fields: t.Any) -> Request:
    chosen = SETTINGS if settings is None else settings
    return Request(tuple(Want(rail.pci, 4200, 4096, chosen) for rail in tuned.node.rails), **fields)


def run(tuned: Tuned, check: bool = False, **fields: t.Any) -> dict[str, t.Any]:
    return configure(tuned.node.machine(), request(tuned, **fields), check)


def test_converges_and_then_changes_nothing(tuned: Tuned) -> None:
    predicted, real = run(tuned, True), run(tuned)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key
    assert {key: real["after"][0][key] for key in SETTINGS} == SETTINGS
    assert real["ports"][0]["maximums"] == {"rx_ring_entries": 8192, "tx_ring_entries": 8192, "channels": 63}
    again = run(tuned)
    assert (again["changed"], again["commands"]) == (False, [])


def drift(tuned: Tuned, key: str) -> None:
    node, state = tuned.node, tuned.state["rail1"]
    if key == "max_read_request_bytes":
        (node.root / "sys/bus/pci/devices/0002:03:00.0/config").write_bytes(config(2))
    elif key == "admin_state":
        node.put("/sys/class/net/rail1/flags", "0x1002\n")
    elif key == "mtu_bytes":
        node.put("/sys/class/net/rail1/mtu", "1500\n")
    else:
        names = {"rx_ring_entries": "rx", "tx_ring_entries": "tx", "channels": "combined", "pause_rx": "pause rx",
                 "pause_tx": "pause tx"}
        state[names[key]] = True if key.startswith("pause") else 64 if "ring" in key else 7


@pytest.mark.parametrize(("key", "command"), [
    ("mtu_bytes", "ip link set dev rail1 mtu 4200"), ("rx_ring_entries", "ethtool -G rail1 rx 8192"),
    ("tx_ring_entries", "ethtool -G rail1 tx 8192"), ("channels", "ethtool -L rail1 combined 32"),
    ("pause_rx", "ethtool -A rail1 rx off"), ("pause_tx", "ethtool -A rail1 tx off"),
    ("max_read_request_bytes", "setpci -s 0002:03:00.0 CAP_EXP+08.w=5000:f000"),
    ("admin_state", "ip link set dev rail1 up"),
])
def test_one_value_changed_behind_our_back_is_put_back_alone(tuned: Tuned, key: str, command: str) -> None:
    run(tuned)
    drift(tuned, key)
    predicted, real = run(tuned, True), run(tuned)
    assert [" ".join(argv) for argv in real["commands"]] == [command]
    assert predicted["commands"] == real["commands"]
    assert predicted["diff"] == real["diff"]
    assert run(tuned)["changed"] is False


class Killed(BaseException):
    """Stands for a signal that no code can catch."""


@pytest.mark.parametrize("step", range(12))
def test_killed_before_any_step_the_next_run_converges(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    original, left = io._carry_out, [step]

    def carry_out(*arguments: t.Any) -> t.Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return original(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(io, "_carry_out", carry_out)
        run(tuned)
    assert {key: run(tuned)["after"][1][key] for key in SETTINGS} == SETTINGS
    assert run(tuned)["changed"] is False


def test_a_tool_that_lies_is_found_out(tuned: Tuned) -> None:
    run(tuned)
    drift(tuned, "channels")
    tuned.node.override = {("ethtool", "-L"): lambda argv: ok(), **tuned.node.override}
    with pytest.raises(AidcError, match=r"channels of 0002:03:00.0: got 7, wanted 32 .*Done before the error: ethtool"):
        run(tuned)


@pytest.mark.parametrize(("answer", "text"), [
    (Result((), "missing"), "ethtool -g rail0: got the program is not installed, wanted its output .install the"),
    (Result((), "timeout", None, "", "no answer within 1 s"), "no answer within 1 s"),
    (ok("garbage"), "output that cannot be read"), (failed(1, "broken"), "exit status 1: broken"),
])
def test_a_tool_that_does_not_work_stops_the_call_before_any_write(tuned: Tuned, answer: Result, text: str) -> None:
    tuned.node.override = {("ethtool",): lambda argv: answer, **{
        key: value for key, value in tuned.node.override.items() if key != ("ethtool",)}}
    before = tuned.node.files()
    with pytest.raises(AidcError, match=rf"{text}.*Nothing was changed"):
        run(tuned)
    assert tuned.node.files() == before
    assert tuned.node.mtu(tuned.node.rails[0]) == 1500


def test_a_step_that_fails_says_what_was_done(tuned: Tuned) -> None:
    tuned.node.override = {("ethtool", "-A"): lambda argv: failed(1, "netlink error: Invalid argument"),
                           **tuned.node.override}
    with pytest.raises(AidcError, match=r"ethtool -A rail0 rx off tx off: got exit status 1: netlink error") as caught:
        run(tuned)
    assert ["ethtool", "-L", "rail0", "combined", "32"] in caught.value.done


def test_without_runtime_nothing_of_it_is_touched(tuned: Tuned) -> None:
    result = run(tuned, runtime=False)
    assert {argv[0] for argv in result["commands"]} == {"write"}


def test_settings_alone_leave_mtu_and_files_alone(tuned: Tuned) -> None:
    asked = Request((Want(A, settings={"pause_rx": False, "pause_tx": False}),))
    result = configure(tuned.node.machine(), asked, False)
    assert result["commands"] == [["ethtool", "-A", "rail0", "rx", "off", "tx", "off"]]
    assert result["after"] == [{"pci": A, "mtu_bytes": 1500, "saved_mtu_bytes": None, "pause_rx": False,
                                "pause_tx": False}]
    assert configure(tuned.node.machine(), asked, False)["changed"] is False


def test_all_that_is_wrong_is_said_before_the_first_write(tuned: Tuned) -> None:
    asked = Request((Want(A, 4100, 4096, {"channels": 64, "rx_ring_entries": 100}), Want("0002:03:00.0", 10000)))
    with pytest.raises(AidcError) as caught:
        configure(tuned.node.machine(), asked, False)
    for text in ("at least 4192, for RDMA MTU 4096", "got 64, wanted 1 to 63", "wanted a power of two",
                 "got MTU 10000, wanted at most 9978, the device's maximum", "Nothing was changed."):
        assert text in str(caught.value)


def test_a_listed_rail_that_carries_management_is_refused_and_others_are_reported(tuned: Tuned) -> None:
    tuned.node.default_device = "rail1"
    only = configure(tuned.node.machine(), Request((Want(A, 4200),)), True)
    assert only["excluded"] == [{"pci": "0002:03:00.0", "netdev": "rail1", "excluded": "carries the default route"}]
    with pytest.raises(AidcError, match=r"got a port that carries the default route, wanted a port used only"):
        run(tuned, True)


# -- bonds and VLANs ------------------------------------------------------------------------------

def bond(node: FakeNode) -> None:
    """rail0 and rail1 in bond0, with one VLAN."""
    slave = {"master": "bond0", "linkinfo": {"info_slave_kind": "bond"}}
    node.link_fields = {"rail0": slave, "rail1": slave}
    node.add_netdev("bond0")
    node.add_netdev("bond0.5")
    path = "/etc/systemd/network/20-bond0.network"
    node.put(path, "[Match]\nName=bond0\n")
    original_links, original_list, original = node.links, node.network_list, node.default

    def mtu(name: str) -> int:
        return int(node.get(f"/sys/class/net/{name}/mtu"))

    def links() -> list[dict[str, t.Any]]:
        return [*original_links(),
                {"ifname": "bond0", "mtu": mtu("bond0"), "linkinfo": {"info_kind": "bond"}},
                {"ifname": "bond0.5", "mtu": mtu("bond0.5"), "link": "bond0", "linkinfo": {"info_kind": "vlan"}}]

    def network_list() -> dict[str, t.Any]:
        found = original_list()
        found["Interfaces"].append({"Name": "bond0", "AdministrativeState": "configured",
                                    "OperationalState": "routable", "NetworkFile": path})
        return found

    def default(call: tuple[str, ...]) -> Result:
        result = original(call)
        if call[:5] == ("ip", "link", "set", "dev", "bond0"):
            for name in ("rail0", "rail1"):
                node.put(f"/sys/class/net/{name}/mtu", call[6])
        return result

    node.links, node.network_list, node.default = links, network_list, default  # type: ignore[method-assign]


def test_a_bond_of_rails(node: FakeNode) -> None:
    bond(node)
    both = Request(tuple(Want(rail.pci, 4200) for rail in node.rails))
    predicted, real = (configure(node.machine(), both, check) for check in (True, False))
    assert predicted["commands"] == real["commands"]
    assert [" ".join(argv) for argv in real["commands"]] == [
        "ip link set dev bond0 mtu 4200", "ip link set dev bond0.5 mtu 4200", "write /run/aidc/networkd-reload.pending",
        "write /etc/systemd/network/20-bond0.network.d/50-aidc-mtu.conf", "networkctl reload",
        "remove /run/aidc/networkd-reload.pending"]
    assert [(port["bond"], port["vlans"], port["mtu_bytes"]) for port in real["ports"]] == [
        ("bond0", ["bond0.5"], 4200)] * 2
    assert configure(node.machine(), both, False)["changed"] is False
    with pytest.raises(AidcError, match=r"a member of bond0 with rail1 .not listed"):
        configure(node.machine(), Request((Want(A, 9000),)), True)


def test_a_bond_that_carries_the_default_route_is_refused(node: FakeNode) -> None:
    bond(node)
    node.default_device = "bond0.5"
    with pytest.raises(AidcError, match="a port that carries the default route"):
        configure(node.machine(), Request(tuple(Want(rail.pci, 4200) for rail in node.rails)), True)
