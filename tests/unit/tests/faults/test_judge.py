# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A detector that finds nothing, that names another, or that speaks of a legal state, is caught."""
from __future__ import annotations

from typing import Any

import pytest

from tests.faults import judge
from tests.faults.detect import Finding, Round, play, plays, read, read_audit
from tests.faults.places import Host, Place, Rail
from tests.faults.rows import Detector

RAILS = (Rail(0, "0000:41:00.0", "enp65s0f0np0", "mlx5_0", "10.57.0.2", 24),
         Rail(1, "0000:c1:00.0", "enp193s0f0np0", "mlx5_1", "10.57.1.2", 24))
L1 = Host("l1", "l40s", "networkd", "leaf2", RAILS, [])
HOSTS = {"l1": L1, "nm1": Host("nm1", "l40s", "networkmanager", "leaf2", RAILS, []),
         "gb1": Host("gb1", "gb200", "networkd", "leaf1", RAILS, [])}
PLACE = Place(L1, RAILS[1], HOSTS["nm1"])
DETECTOR = Detector("roce_qos", ("would run: dcb pfc set dev {netdev}",))


def found(text: str, host: str = "l1", run: str = "roce_qos", **more: Any) -> Finding:
    return Finding(host, run, text, **more)


RIGHT = found("would run: dcb pfc set dev enp193s0f0np0 prio-pfc all:off")


@pytest.mark.parametrize(("text", "word", "yes"), [
    ("mlx5_1: down", "mlx5_1", True), ("mlx5_10: down", "mlx5_1", False), ("of 10.57.1.2.", "10.57.1.2", True),
    ("of 10.57.1.21", "10.57.1.2", False), ("of 110.57.1.2", "10.57.1.2", False), ("20-enp1.network.d", "enp1", True),
    ("owner of enp1: got", "enp1", True), ("PCI 0000:c1:00.0 (x)", "0000:c1:00.0", True),
    ("rail 1 and", "rail 1", True), ("rail 11", "rail 1", False), ("host gb10", "gb1", False),
    ("aidc-rail1", "rail1", True),
])
def test_a_name_is_a_whole_word(text: str, word: str, yes: bool) -> None:
    assert judge.names(text, word) is yes


def test_the_right_finding_alone_is_right() -> None:
    assert judge.fault(DETECTOR, PLACE, "rail", [RIGHT]) == []
    for wrong in ([], [found(RIGHT.text, host="nm1")], [found(RIGHT.text, run="roce_gid")],
                  [found("would run: dcb pfc set dev enp65s0f0np0")]):
        assert "wanted 'would run: dcb pfc set dev enp193s0f0np0'" in judge.fault(DETECTOR, PLACE, "rail", wrong)[0]


def test_a_finding_that_names_no_rail_is_wrong_unless_the_row_is_about_the_host() -> None:
    detector = Detector("roce_qos", ("lldpad",))
    assert judge.fault(detector, PLACE, "host", [found("lldpad runs")]) == []
    assert "does not name rail 1 of l1" in judge.fault(detector, PLACE, "rail", [found("lldpad runs")])[0]


def test_whoever_blames_another_is_caught() -> None:
    assert judge.blames([PLACE], [RIGHT, found("path to nm1")], HOSTS) == [], "the peer may be named"
    for text in ("0000:41:00.0 is down", "mlx5_0", "gb1 differs"):
        assert judge.blames([PLACE], [found(text)], HOSTS)
    assert "rail 0" in judge.blames([PLACE], [found("x", rail=0)], HOSTS)[0]
    assert judge.blames([PLACE], [found("x", rail=0, note=True)], HOSTS) == []
    both = [PLACE, Place(L1, RAILS[0])]
    assert judge.blames(both, [found("0000:41:00.0 is down")], HOSTS) == []


def test_a_twin_may_have_no_finding_but_a_note() -> None:
    others = [found("x", note=True), found("x", run="audit"), found("x", host="gb1")]
    assert judge.twin(PLACE, ["roce_qos"], others) == []
    assert judge.twin(PLACE, ["roce_qos"], [RIGHT]) == [f"roce_qos: {RIGHT.text}"]


def test_a_rule_of_the_audit_is_told_by_id_and_rail() -> None:
    detector = Detector("audit", ("address-duplicate", "{peer_ip}"))
    right = found("address-duplicate: got 10.57.1.2", run="audit", rule="address-duplicate", rail=1)
    assert judge.fault(detector, PLACE, "rail", [right]) == []
    for rule, number in (("mac-duplicate", 1), ("address-duplicate", 0)):
        assert judge.fault(detector, PLACE, "rail", [found(right.text, run="audit", rule=rule, rail=number)])


def task(**hosts: Any) -> dict[str, Any]:
    return {"task": {"name": "t"}, "hosts": hosts}


PATH = {"interface": "e", "peer": "nm1", "size_bytes": 4200}


def test_findings_are_read_from_what_ansible_printed() -> None:
    data = {"plays": [
        {"play": {"name": "roce_qos"}, "tasks": [
            task(l1={"commands": [["dcb", "pfc"]], "steps": [{"why": "pfc is [4]"}], "findings": [
                {"object": "pause", "got": "on", "wanted": "off", "hint": "h"}]},
                 nm1={"skipped": True, "failed": True}),
            task(l1={"failed": True, "msg": "l1 would run: dcb pfc"}, nm1={"commands": [], "findings": []})]},
        {"play": {"name": "path_probe"}, "tasks": [task(l1={"paths": [
            {**PATH, "rail": 1, "largest_bytes": 1500, "passed": False},
            {**PATH, "rail": 0, "largest_bytes": 4200, "passed": True}]})]},
        {"play": {"name": "apply roce_qos"}, "tasks": [task(gb1={"commands": [["dcb", "app"]]})]},
    ]}
    assert [(one.host, one.run, one.text.strip()) for one in read(data)] == [
        ("l1", "roce_qos", "pause: got on, wanted off (h)"), ("l1", "roce_qos", "would run: dcb pfc"),
        ("l1", "roce_qos", "because: pfc is [4]"), ("l1", "roce_qos", "l1 would run: dcb pfc"),
        ("l1", "path_probe", "e to nm1 rail 1: 1500 bytes pass, wanted 4200"),
        ("gb1", "apply roce_qos", "ran: dcb app")]
    assert [one.text.strip() for one in read(data, failures=True)] == ["l1 would run: dcb pfc"]


def test_findings_of_the_audit() -> None:
    item = {"id": "mtu-running", "severity": "error", "pool": "p", "hosts": ["l1", "nm1"], "rail": 1, "got": "1500",
            "wanted": "4200", "evidence": ["0000:c1:00.0"], "fix": "f", "source": "s"}
    data = {"plays": [{"play": {"name": "audit"}, "tasks": [
        task(localhost={"action": "aidc.gpu_cluster.fabric_audit", "findings": [item, {**item, "severity": "note"}]}),
        task(localhost={"action": "other", "findings": [item]})]}]}
    assert [(one.host, one.rule, one.rail, one.note) for one in read_audit(data)] == [
        ("l1", "mtu-running", 1, False), ("nm1", "mtu-running", 1, False),
        ("l1", "mtu-running", 1, True), ("nm1", "mtu-running", 1, True)]


@pytest.mark.parametrize(("tasks", "words"), [
    ([], "it did not run"),
    ([{"action": "aidc.gpu_cluster.fabric_audit", "failed": True, "msg": "no fleet record"}], "no fleet record"),
])
def test_an_audit_that_fails_is_not_silent(tasks: list[dict[str, Any]], words: str) -> None:
    data = {"plays": [{"play": {"name": "audit"}, "tasks": [task(l1=one) for one in tasks]}]}
    with pytest.raises(RuntimeError, match=words):
        read_audit(data)


def test_plays_verify_first_and_change_after() -> None:
    asked = Round()
    for host, run in (("l1", "apply roce_qos"), ("gb1", "roce_qos"), ("l1", "roce_qos"), ("l1", "audit"),
                      ("l1", "roce_qos")):
        asked.ask(host, run)
    made = plays(asked.runs)
    assert [(one["name"], one["hosts"], one["vars"]) for one in made] == [
        ("roce_qos", "gb1:l1", {"roce_qos_mode": "verify"}), ("apply roce_qos", "l1", {"roce_qos_mode": "apply"})]
    assert play("mlx5_info", ["l1"])["vars"] == {}
