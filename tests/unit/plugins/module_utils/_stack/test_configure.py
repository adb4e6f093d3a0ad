# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import Request

from tests.unit.plugins.fake import ok
from tests.unit.plugins.stack_node import INBOX_HOLDERS, KERNEL, NEXT, StackNode, stack_node

DOCA = Request("doca_ofed", {"Debian": ("ethtool",)}, doca_version="3.2.1-044000", restart=True)
SAYS_OK = ok("Unloading HCA driver: [  OK  ]\nLoading HCA driver and Access Layer: [  OK  ]\n")
RESTART = [["/etc/init.d/openibd", "restart"]]


@pytest.fixture
def node(tmp_path: Path) -> StackNode:
    """DOCA-OFED installed, the kernel's own driver loaded."""
    made = stack_node(tmp_path)
    made.install_ofed()
    made.packages["ethtool"] = "6.7"
    return made


def restarts(node: StackNode) -> int:
    return sum(call == ("/etc/init.d/openibd", "restart") for call in node.calls)


def test_check_mode_then_run_then_nothing(node: StackNode) -> None:
    predicted = configure(node.machine(), DOCA, True)
    assert (restarts(node), (node.root / "run").exists()) == (0, False)
    real = configure(node.machine(), DOCA, False)
    for key in ("changed", "before", "after", "commands", "steps", "diff", "restart_required", "deferred"):
        assert predicted[key] == real[key], key
    assert (real["commands"], restarts(node)) == (RESTART, 1)
    assert (real["before"]["loaded"]["kind"], real["after"]["loaded"]["version"]) == ("inbox", "25.10-1.7.1")
    assert (real["restart_required"], real["findings"], real["rdma_users_known"]) == (False, [], True)
    again = configure(node.machine(), DOCA, False)
    assert (again["changed"], again["commands"], again["rdma_users_known"], restarts(node)) == (False, [], None, 1)


def test_inbox_reads_and_takes_no_lock(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    found = configure(node.machine(), Request(packages={"Debian": ("rdma-core",)}, programs=("x",)), False)
    assert (found["changed"], found["missing_packages"], found["missing_programs"]) == (False, ["rdma-core"], ["x"])
    assert not (tmp_path / "run").exists()


def test_before_the_installation_nothing_is_restarted(tmp_path: Path) -> None:
    found = configure(stack_node(tmp_path).machine(), DOCA, False)
    assert (found["changed"], found["install"]) == (False, ["ethtool", "doca-ofed=3.2.1-044000"])


def use_rdma(node: StackNode) -> None:
    node.qps = [{"ifname": "mlx5_0", "type": "RC", "comm": "python3", "pid": 4711}]


WAYS: dict[str, tuple[t.Callable[[StackNode], None], str]] = {
    "connections": (use_rdma, "pid 4711 python3"),
    "route": (lambda node: setattr(node, "default_device", "rail1"), "rail1"),
    "holder": (lambda node: node.load("inbox", {**INBOX_HOLDERS, "ib_uverbs": ["mlx5_ib", "nvidia_peermem"]}),
               "nvidia_peermem"),
    "no openibd": (lambda node: (node.root / "etc/init.d/openibd").unlink(), "/etc/init.d/openibd"),
    "ports not known": (lambda node: node.override.update(ip=lambda call: Result((), "missing")),
                        "ip -d -j addr show"),
}


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_pending_with_who_is_in_the_way_and_never_changed(node: StackNode, way: str, check_mode: bool) -> None:
    arrange, holder = WAYS[way]
    arrange(node)
    for _run in range(2):
        found = configure(node.machine(), DOCA, check_mode)
        assert (found["changed"], found["commands"], found["restart_required"]) == (False, [], True)
        assert found["deferred"][0]["holder"] == holder
        assert found["before"] == found["after"]
    assert restarts(node) == 0


def test_the_policy_decides_over_connections_only(node: StackNode) -> None:
    use_rdma(node)
    never = Request(**{**DOCA.__dict__, "disruption_policy": "never"})
    assert configure(node.machine(), never, False)["deferred"] == [{"holder": "disruption_policy", "why": "is never"}]
    force = Request(**{**DOCA.__dict__, "disruption_policy": "force"})
    node.default_device = "rail0"
    assert configure(node.machine(), force, False)["deferred"][0]["holder"] == "rail0"
    node.default_device = "eth0"
    assert configure(node.machine(), force, False)["commands"] == RESTART


def fails(node: StackNode) -> AidcError:
    with pytest.raises(AidcError) as caught:
        configure(node.machine(), DOCA, False)
    return caught.value


def test_openibd_that_says_ok_and_does_nothing(node: StackNode) -> None:
    node.override["openibd"] = lambda call: SAYS_OK
    error = fails(node)
    assert error.done == RESTART
    assert "mlx5_core: got the kernel's own driver loaded, wanted that of DOCA-OFED (25.10-1.7.1)" in str(error)
    assert "exit status 0, and it printed: Unloading HCA driver" in str(error)
    assert node.now >= 60


def test_openibd_that_loses_the_devices(node: StackNode) -> None:
    def lose(call: tuple[str, ...]) -> Result:
        node.load("none")
        return SAYS_OK

    node.override["openibd"] = lose
    assert "0000:03:00.0: got no driver and no netdev and no RDMA device" in str(fails(node))
    # The next run finds no driver loaded, and loads it.
    del node.override["openibd"]
    found = configure(node.machine(), DOCA, False)
    assert (found["commands"], found["after"]["loaded"]["kind"]) == (RESTART, "ofed")


def test_openibd_that_complains_and_has_done_it(node: StackNode) -> None:
    def complain(call: tuple[str, ...]) -> Result:
        node.load("ofed")
        return Result((), "failed", 1, "", "a warning about something else")

    node.override["openibd"] = complain
    assert configure(node.machine(), DOCA, False)["after"]["loaded"]["kind"] == "ofed"


def test_openibd_that_hangs(node: StackNode) -> None:
    node.override["openibd"] = lambda call: Result((), "timeout", None, "", "no answer within 300 s; ended by us")
    assert "no answer within 300 s" in str(fails(node))


def test_devices_may_come_late(node: StackNode) -> None:
    sleep = node.sleep

    def late(seconds: float) -> None:
        sleep(seconds)
        if node.now > 5:
            node.load("ofed")

    def unload(call: tuple[str, ...]) -> Result:
        node.load("none")
        return SAYS_OK

    node.override["openibd"] = unload
    node.sleep = late  # type: ignore[method-assign]
    assert configure(node.machine(), DOCA, False)["after"]["loaded"]["kind"] == "ofed"


@pytest.mark.parametrize("tool", ["dpkg_query", "modinfo", "dkms", "ofed_info"])
def test_a_tool_that_hangs_stops_before_the_restart(node: StackNode, tool: str) -> None:
    node.override[tool] = lambda call: Result((), "timeout", None, "", "no answer within 1 s; ended by us")
    error = fails(node)
    assert str(error).endswith("Nothing was changed.") and restarts(node) == 0


def test_a_newer_kernel_refuses_the_installation_and_later_the_missing_module(tmp_path: Path) -> None:
    node = stack_node(tmp_path)
    node.packages["ethtool"] = "6.7"
    node.kernel(NEXT)
    assert f"{KERNEL} running and {NEXT} installed" in str(fails(node))
    node.install_ofed()
    assert f"mlx5_core of kernel {NEXT}: got no driver, wanted that of DOCA-OFED" in str(fails(node))
    node.install_ofed(KERNEL, NEXT)
    assert configure(node.machine(), DOCA, False)["commands"] == RESTART


def test_bad_options_stop_before_any_question(node: StackNode) -> None:
    with pytest.raises(AidcError, match="doca_version: got None"):
        configure(node.machine(), Request("doca_ofed"), False)
    assert node.calls == []


def test_another_run_holds_the_lock(node: StackNode) -> None:
    import fcntl

    lock = node.root / "run/lock/aidc.lock"
    lock.parent.mkdir(parents=True)
    lock.touch(mode=0o600)
    with open(lock, "r+", encoding="utf-8") as stream:
        stream.write(json.dumps({"pid": 1, "user": "ann", "what": "roce_qos", "since": "now"}))
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert "held by pid 1 of ann (roce_qos)" in str(fails(node))
        # Reading needs no lock.
        assert configure(node.machine(), DOCA, True)["commands"] == RESTART
