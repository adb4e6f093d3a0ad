# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused before any write, and reading through both tools: missing, hung, failing, garbage."""
from __future__ import annotations

import os
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.model import Node, Request, Step

from tests.unit.plugins.fake import ok
from tests.unit.plugins.module_utils._roce.conftest import request_of
from tests.unit.plugins.module_utils._roce.fake import NETDEV, PCI, PCIS, Qos

BASE = f"/sys/bus/pci/devices/{PCI}"


def ports(qos: Qos, request: Request | None = None) -> Node:
    return io.find_ports(qos.node.machine(), request or request_of())


def refusal(qos: Qos) -> str:
    node = ports(qos)
    assert len(node.problems) == 1 and node.ports == {}
    return node.problems[0].text()


def test_ports_with_their_devices(qos: Qos) -> None:
    node = ports(qos, request_of(ports=[{"pci": pci} for pci in PCIS]))
    assert [(port.netdev, port.rdma_device, port.bond, port.carrier) for port in node.ports.values()] == [
        ("rail0", "mlx5_0", None, True), ("rail1", "rocep3s0f0", None, True)]


@pytest.mark.parametrize(("entries", "text"), [
    ([{"pci": "03:00.0"}], "got '03:00.0', wanted a PCI address such as 0000:03:00.0"),
    ([{"pci": PCI}, {"pci": PCI}], "got listed twice"),
    ([{"pci": "0000:99:00.0"}], "got no such mlx5 port, wanted an mlx5 port's PCI address (there is: 0000:03:00.0"),
])
def test_addresses(qos: Qos, entries: list[dict[str, str]], text: str) -> None:
    assert text in ports(qos, request_of(ports=entries)).problems[0].text()


def test_vf(qos: Qos) -> None:
    qos.node.put(f"{BASE}/physfn/vendor", "0x15b3\n")
    assert refusal(qos).startswith(f"{PCI}: got a virtual function, wanted a physical function")


def test_infiniband(qos: Qos) -> None:
    qos.node.put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
    assert "got link layer InfiniBand, wanted Ethernet" in refusal(qos)


CONFIG = "Configurations:                  Next Boot\n        INTERNAL_CPU_MODEL          {}\n" \
         "        INTERNAL_CPU_OFFLOAD_ENGINE {}\n"


@pytest.mark.parametrize(("model", "engine", "text"), [
    ("EMBEDDED_CPU(1)", "ENABLED(0)", "got a BlueField in DPU mode"),
    ("EMBEDDED_CPU(1)", "DISABLED(1)", None), ("SEPARATED_HOST(0)", "ENABLED(0)", None)])
def test_bluefield(qos: Qos, model: str, engine: str, text: str | None) -> None:
    qos.node.put(f"{BASE}/device", "0xa2dc\n")
    qos.node.override[("mlxconfig",)] = lambda call: Result(call, "missing")
    qos.node.override[("mstconfig",)] = lambda call: ok(CONFIG.format(model, engine))
    if text is None:
        assert ports(qos).problems == ()
    else:
        assert text in refusal(qos)


def test_bluefield_of_unknown_mode(qos: Qos) -> None:
    qos.node.put(f"{BASE}/device", "0xa2dc\n")
    qos.node.override[("mlxconfig",)] = qos.node.override[("mstconfig",)] = lambda call: Result(call, "missing")
    assert "unknown mode (mstconfig: the program is not installed)" in refusal(qos) and "mstflint" in refusal(qos)


def test_a_lag_has_one_rdma_device_for_both_slaves(qos: Qos) -> None:
    node = qos.node
    node.put("/sys/class/net/bond0/bonding/slaves", "rail0 rail1\n")
    for netdev in ("rail0", "rail1"):
        (node.root / f"sys/class/net/{netdev}/master").symlink_to("../bond0")
    os.rmdir(node.root / f"sys/bus/pci/devices/{PCIS[1]}/infiniband/rocep3s0f0")
    found = ports(qos, request_of(ports=[{"pci": pci} for pci in PCIS])).ports
    assert [(port.rdma_device, port.bond) for port in found.values()] == [("mlx5_0", "bond0")] * 2


def gathered(qos: Qos, **options: t.Any) -> Node:
    from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import factory
    request, machine = request_of(**options), qos.node.machine()
    return io.gather(machine, request, ports(qos, request), factory.choose(machine, request.backend, [NETDEV]))


def test_one_process_reads_all_ports(qos: Qos) -> None:
    node = gathered(qos, ports=[{"pci": pci} for pci in PCIS])
    assert node.problems == () and len(qos.calls("dcb")) == 1
    assert {port.state["trust"] for port in node.ports.values()} == {"pcp"}


FAULTS = {
    "hung": Result((), "timeout", None, "", "no answer within 1 s; ended by us"),
    "failing": Result((), "failed", 1, "", "Attribute read: Operation not supported\nCommand failed x:1"),
    "garbage": ok("\x00\x01 what?"),
    "fewer answers": ok('{"pfc_cap":8}'),
    "missing": Result((), "missing"),
}


@pytest.mark.parametrize(("tool", "package"), [("dcb", "iproute2"), ("mlnx_qos", "mlnx-tools")])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_tool_in_trouble_is_one_clear_problem(qos: Qos, fault: str, tool: str, package: str) -> None:
    qos.node.override[(tool,)] = lambda call: FAULTS[fault]
    node = gathered(qos, backend=tool)
    assert len(node.problems) == 1
    text = node.problems[0].text()
    assert tool in text
    assert {"hung": "no answer within 1 s", "failing": "not supported", "garbage": "cannot be read",
            "fewer answers": "cannot be read", "missing": package}[fault] in text


def test_a_dcb_with_another_json_is_read_by_its_text(qos: Qos) -> None:
    answer = qos.node.override[("dcb",)]
    qos.node.override[("dcb",)] = lambda call: ok("[]") if call[1] == "-j" else answer(call)
    node = gathered(qos)
    assert node.problems == () and node.ports[PCI].state["ets"]["prio_tc"][0] == 1


def test_what_a_tool_does_not_show_is_unsupported(qos: Qos) -> None:
    text = "\n".join(line for line in Qos.mlnx_qos_text(qos.ports[NETDEV]).splitlines()
                     if not line.startswith(("Receive buffer", "\tbuffer", "Cable")))
    qos.node.override[("mlnx_qos",)] = lambda call: ok(text)
    node = gathered(qos, backend="mlnx_qos", cable_length_metres=5)
    assert node.ports[PCI].unsupported["cable_length"] == "mlnx_qos shows no such state of this port"


def test_pause_and_lldpad_are_seen(qos: Qos) -> None:
    qos.pause, qos.lldpad = "on", "active"
    node = gathered(qos)
    assert node.lldpad and node.ports[PCI].global_pause == "rx and tx"
    qos.node.override[("ethtool", "-a")] = lambda call: Result(call, "missing")
    assert gathered(qos).ports[PCI].global_pause is None


def test_the_next_step_waits_for_the_link(qos: Qos) -> None:
    path = f"/sys/class/net/{NETDEV}/carrier"
    seen: list[float] = []
    up_after = [20]

    def sleep(seconds: float) -> None:
        seen.append(seconds)
        qos.node.now += seconds
        qos.node.put(path, "0\n" if 2 <= len(seen) <= up_after[0] else "1\n")

    qos.node.sleep = sleep  # type: ignore[method-assign]
    machine = qos.node.machine()
    step = Step(("dcb", "pfc", "set", "dev", NETDEV, "prio-pfc", "3:on"), ("pfc",), "why", PCI, "link", NETDEV)
    io.apply(machine, [step])
    assert len(seen) == 24
    up_after[0] = 1000
    with pytest.raises(AidcError, match="carrier of rail0: got none after 60 s") as caught:
        io.apply(machine, [step])
    assert caught.value.done == [list(step.command)]


def test_a_refused_write_names_the_steps_before_it(qos: Qos) -> None:
    good = Step(("dcb", "pfc", "set", "dev", NETDEV, "delay", "9"), ("cable_length",), "why", PCI)
    bad = Step(("write", "/sys/kernel/nothing", "1"), ("cnp",), "why", PCI)
    with pytest.raises(AidcError, match=r"/sys/kernel/nothing: got Invalid argument, wanted 1 to be taken") as caught:
        io.apply(qos.node.machine(), [good, bad])
    assert caught.value.done == [list(good.command)]
