# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole call: check mode equal to the run, a tool that lies, a kill between two writes, how many processes."""
from __future__ import annotations

import contextlib
import copy
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.configure import configure

from tests.unit.plugins.module_utils._roce.conftest import request_of
from tests.unit.plugins.module_utils._roce.fake import FRESH, PCIS, Qos

BOTH: dict[str, t.Any] = {"ports": [{"pci": pci} for pci in PCIS]}


class Killed(BaseException):
    pass


@pytest.mark.parametrize("backend", ["dcb", "mlnx_qos"])
def test_two_ports_converge_and_stay(qos: Qos, backend: str) -> None:
    request, machine = request_of(backend=backend, **BOTH), qos.node.machine()
    predicted, done = configure(machine, request, True), configure(machine, request, False)
    assert predicted == done and done["changed"] is True
    assert [entry["pfc"] for entry in done["after"]] == [[3], [3]]
    again = configure(machine, request, False)
    assert again["commands"] == [] and again["before"] == again["after"] == done["after"]


def test_processes_of_a_call(qos: Qos) -> None:
    """The project's budget: 6 and 3 per device."""
    request, machine = request_of(**BOTH), qos.node.machine()
    configure(machine, request, False)
    before = len(qos.node.calls)
    configure(machine, request, False)
    assert len(qos.node.calls) - before == 4  # dcb, systemctl, ethtool twice


@pytest.mark.parametrize(("backend", "refuse", "group"), [
    ("dcb", "pfc", "pfc"), ("dcb", "ets", "ets"), ("dcb", "app", "trust"), ("mlnx_qos", "--pfc", "pfc"),
    ("mlnx_qos", "--trust", "trust"), ("mlnx_qos", "-p", "ets")])
def test_a_tool_that_lies_is_found_out(qos: Qos, backend: str, refuse: str, group: str) -> None:
    qos.refuse.add(refuse)
    with pytest.raises(AidcError, match=rf"{group} of 0000:03:00.0 \(rail0\): .*read back after all steps") as caught:
        configure(qos.node.machine(), request_of(backend=backend), False)
    assert caught.value.done and "Done before the error" in str(caught.value)


@pytest.mark.parametrize("backend", ["dcb", "mlnx_qos"])
def test_killed_after_any_step_the_next_run_converges(qos: Qos, backend: str) -> None:
    request, machine = request_of(backend=backend, **BOTH), qos.node.machine()
    whole = configure(machine, request, True)["commands"]
    tool = qos.node.override[(backend,)]
    for count in range(1, len(whole)):
        qos.ports = {netdev: copy.deepcopy(FRESH) for netdev in qos.ports}
        left = [count]

        def killing(call: tuple[str, ...], left: list[int] = left) -> t.Any:
            writes = call[1] not in ("-j", "-N") and call[-1] != "-a"
            if writes:
                if not left[0]:
                    raise Killed
                left[0] -= 1
            return tool(call)

        qos.node.override[(backend,)] = killing
        with contextlib.suppress(Killed):
            configure(machine, request, False)
        qos.node.override[(backend,)] = tool
        done = configure(machine, request, False)
        assert [entry["pfc"] for entry in done["after"]] == [[3], [3]], count
        assert configure(machine, request, False)["commands"] == []


def test_a_port_that_carries_the_default_route_is_refused_only_if_its_link_would_stop(qos: Qos) -> None:
    qos.node.default_device = "rail0"
    with pytest.raises(AidcError, match=r"got a port that carries the default route, .* Nothing was changed"):
        configure(qos.node.machine(), request_of(), False)
    assert not [call for call in qos.calls("dcb") if "set" in call or "add" in call]
    quiet = configure(qos.node.machine(), request_of(unmanaged_groups=["trust", "dscp_map", "pfc"]), False)
    assert [step["groups"] for step in quiet["steps"]] == [["ets"], ["cm_tos"]]


def test_findings_and_unsupported_are_in_the_result(qos: Qos) -> None:
    qos.pause = "on"
    result = configure(qos.node.machine(), request_of(), False)
    assert result["findings"][0]["object"] == "global pause of 0000:03:00.0 (rail0)"
    assert [entry["group"] for entry in result["unsupported"]] == ["ecn", "traffic_class"]
    assert result["after"][0]["ecn"] is None
    with pytest.raises(AidcError, match="traffic_class of 0000:03:00.0 .rail0.: got unsupported"):
        configure(qos.node.machine(), request_of(require_groups=["traffic_class"]), True)
