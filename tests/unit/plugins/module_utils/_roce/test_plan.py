# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden plans: for each backend, what is done for a fresh port, and for one value that was changed behind our back."""
from __future__ import annotations

import copy
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce import plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.backend_dcb import Dcb
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.backend_mlnx_qos import MlnxQos
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._roce.model import Node, Port, Request, Step, Want

from tests.unit.plugins.fake import two_rails
from tests.unit.plugins.module_utils._roce.conftest import request_of
from tests.unit.plugins.module_utils._roce.fake import NETDEV, PCI, PCIS, Qos

GOLDEN = Path(__file__).parent / "golden"
CASES = [pytest.param(file.stem, case, id=f"{file.stem}: {case['name']}") for file in sorted(GOLDEN.glob("*.yml"))
         for case in yaml.safe_load(file.read_text(encoding="utf-8"))]


def prepared(qos: Qos, case: dict[str, t.Any]) -> None:
    if not case.get("fresh"):
        configure(qos.node.machine(), request_of(), False)
    changed = copy.deepcopy(case.get("changed", {}))
    qos.ports[NETDEV]["app"].update(changed.pop("entries", {}))
    qos.ports[NETDEV].update(changed)
    for path, text in case.get("files", {}).items():
        qos.node.put(path, f"{text}\n")


def expanded(text: str) -> list[str]:
    words: list[str] = []
    for word in text.split():
        if word.startswith("MAP"):
            left_out = [int(number) for number in word.split("-")[1:]]
            words += [f"{dscp}:{dscp >> 3}" for dscp in range(64) if dscp not in left_out]
        else:
            words.append(word)
    return words


@pytest.mark.parametrize(("backend", "case"), CASES)
def test_golden_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, case: dict[str, t.Any]) -> None:
    qos = Qos(two_rails(tmp_path), monkeypatch, ofed=backend == "mlnx_qos")
    prepared(qos, case)
    request = request_of(**case.get("options", {}))
    predicted = configure(qos.node.machine(), request, True)
    assert predicted["backend"] == backend
    assert predicted["commands"] == [expanded(text) for text in case["commands"]]
    if "disruptive" in case:
        assert [step["disruptive"] for step in predicted["steps"]] == case["disruptive"]
    done = configure(qos.node.machine(), request, False)
    for key in ("changed", "before", "after", "commands", "diff", "steps", "unsupported"):
        assert done[key] == predicted[key], key
    assert configure(qos.node.machine(), request, False)["commands"] == []


def port(netdev: str = NETDEV, **changes: t.Any) -> Port:
    return Port(PCI, netdev, "mlx5_0", **changes)


def test_two_ports_of_one_lag_share_tos_and_write_it_once() -> None:
    wants = tuple(Want(pci, {"cm_tos": 104}) for pci in PCIS)
    ports = {pci: Port(pci, f"rail{number}", "mlx5_bond_0", "bond0", state={"cm_tos": 0})
             for number, pci in enumerate(PCIS)}
    steps = plan.plan(Request(wants), Node("dcb", ports), Dcb())
    assert [step.command for step in steps] == [
        ("write", "/sys/kernel/config/rdma_cm/mlx5_bond_0/ports/1/default_roce_tos", "104")]
    other = (wants[0], Want(PCIS[1], {"cm_tos": 96}))
    problems = plan.check(Request(other), Node("dcb", ports), Dcb())
    assert [one.text() for one in problems] == [
        "cm_tos of mlx5_bond_0: got 104 for 0000:03:00.0, 96 for 0002:03:00.0, wanted one value "
        "(both are ports of bond0)"]


def test_pfc_of_a_bond_goes_slave_by_slave_with_a_wait_between() -> None:
    wants = tuple(Want(pci, {"pfc": [3]}) for pci in PCIS)
    ports = {pci: Port(pci, f"rail{number}", "mlx5_bond_0", "bond0", True, {"pfc": [], "dcbx": "host"})
             for number, pci in enumerate(PCIS)}
    steps = plan.plan(Request(wants), Node("dcb", ports), Dcb())
    assert [(step.command[4], step.wait_carrier) for step in steps] == [("rail0", "rail0"), ("rail1", "rail1")]
    down = {PCI: port(state={"pfc": []})}
    assert plan.plan(Request(wants[:1]), Node("dcb", down), Dcb())[0].wait_carrier is None


def test_firmware_owner_is_refused_unless_taken_over() -> None:
    node = Node("dcb", {PCI: port(state={"dcbx": "firmware", "pfc": []})})
    want = Want(PCI, {"dcbx": "host", "pfc": [3]})
    problems = plan.check(Request((want,)), node, Dcb())
    assert len(problems) == 1 and "take_over: true" in problems[0].hint and "firmware" in problems[0].got
    assert plan.check(Request((want,), take_over=True), node, Dcb()) == []
    # Not managing the owner does not make it a good one.
    unmanaged = Want(PCI, {"pfc": [3]})
    assert len(plan.check(Request((unmanaged,), take_over=True), node, Dcb())) == 1
    given_back = Want(PCI, {"dcbx": "firmware"})
    host = Node("dcb", {PCI: port(state={"dcbx": "host"})})
    assert "mlnx_qos -d fw" in plan.check(Request((given_back,)), host, Dcb())[0].hint
    assert plan.check(Request((given_back,)), host, MlnxQos()) == []


def test_what_cannot_be_had_is_an_error_only_when_required() -> None:
    node = Node("dcb", {PCI: port(unsupported={"ecn": "no switch"})})
    state = {"ecn": {"priority": 3, "np": True, "rp": True}}
    request = Request((Want(PCI, state),))
    assert plan.check(request, node, Dcb()) == [] and plan.plan(request, node, Dcb()) == []
    assert plan.unsupported(request, node) == [{"pci": PCI, "group": "ecn", "reason": "no switch"}]
    required = Request((Want(PCI, state, frozenset({"ecn"})),))
    assert [one.hint for one in plan.check(required, node, Dcb())] == ["no switch"]


def test_buffers_above_the_ports_total_are_refused() -> None:
    node = Node("dcb", {PCI: port(state={"buffer_total": 1000})})
    want = Want(PCI, {"buffer": {"prio_buffer": [0] * 8, "buffer_size": [600, 600, 0, 0, 0, 0, 0, 0]}})
    assert "1200 bytes together, wanted at most 1000" in plan.check(Request((want,)), node, Dcb())[0].text()


def test_a_link_that_carries_more_is_not_stopped_but_a_bond_member_is() -> None:
    node, step = Node("dcb", {PCI: port()}), Step(("dcb",), ("pfc",), "why", PCI, "link")
    assert plan.check_uses([step], node, {NETDEV: "is a member of the bond bond0"}) == []
    uses = {NETDEV: "is a member of the bond bond0; carries the default route"}
    assert [one.got for one in plan.check_uses([step], node, uses)] == ["a port that carries the default route"]
    quiet = Step(("dcb",), ("ets",), "why", PCI)
    assert plan.check_uses([quiet], node, uses) == []


def test_global_pause_is_a_finding_where_pfc_is_wanted() -> None:
    node = Node("dcb", {PCI: port(global_pause="rx and tx")})
    assert plan.findings(Request((Want(PCI, {}, lossless=True),)), node)[0]["got"] == "rx and tx on"
    assert plan.findings(Request((Want(PCI, {}, lossless=False),)), node) == []


def test_verify_names_what_a_tool_lied_about() -> None:
    node = Node("dcb", {PCI: port(state={"pfc": []})}, lldpad=True)
    texts = [one.text() for one in plan.verify(Request((Want(PCI, {"pfc": [3]}),)), node)]
    assert texts[0].startswith(f"pfc of {PCI} (rail0): got [], wanted [3]") and "still runs" in texts[1]


def test_a_wrong_request_says_that_nothing_was_changed(qos: Qos) -> None:
    qos.lldpad = "active"
    with pytest.raises(AidcError, match=r"lldpad.service: got it runs, .* Nothing was changed"):
        configure(qos.node.machine(), request_of(), False)
    done = configure(qos.node.machine(), request_of(take_over=True), False)
    assert done["commands"][0] == ["systemctl", "disable", "--now", "lldpad.service"]
