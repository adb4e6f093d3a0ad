# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting and clearing without a lab: the mechanisms write down what they are asked to do."""
from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from lab import fabric, lifecycle, power
from lab.faults import manage, scope, steps, store, table
from lab.faults.table import FaultError
from lab.fleet import Host
from lab.hardware.spec import node_spec
from lab.instance import Instance

ROWS = table.load()


class Machine:
    """An instance's folder, which hosts are on, and all that was done."""

    def __init__(self, patch: pytest.MonkeyPatch, directory: Path) -> None:
        patch.setenv("AIDC_LAB_STATE", str(directory))
        self.instance = Instance("unit")
        self.on = {"login1", "gb1", "gb2", "epyc1"}
        self.done: list[str] = []
        self.fail = ""
        for number, (name, kind) in enumerate((("login1", "login"), ("gb1", "gb200"), ("gb2", "gb200"),
                                               ("epyc1", "epyc9754")), 1):
            leaf = None if kind == "login" else "leaf2" if name == "epyc1" else "leaf1"
            spec = node_spec(kind, name, number) if leaf else None
            ports = lifecycle.cables(Host(name, kind, number, leaf, {}), spec)
            self.instance.host_dir(name).mkdir(parents=True)
            (self.instance.host_dir(name) / "host.json").write_text(json.dumps({
                "ports": [dataclasses.asdict(port) for port in ports], "spec": spec.to_json() if spec else None}))
        self.instance.write(hosts=["login1", "gb1", "gb2", "epyc1"])
        patch.setattr(power, "running", lambda _instance, host: 1 if host in self.on else None)
        patch.setattr(power, "wait_until_running", lambda _instance, host: self.done.append(f"waited for {host}"))
        patch.setattr(steps, "MECHANISMS", {
            name: dataclasses.replace(mechanism, do=self.doing(name)) for name, mechanism in steps.MECHANISMS.items()})

    def doing(self, name: str) -> Any:
        def do(step: steps.Step, which: str) -> None:
            what = f"{which} {name} {step.host} {step.keys.get(which) or step.keys.get('name', '')}".strip()
            if self.fail and self.fail in what:
                raise FaultError(f"cannot {what}")
            self.done.append(what)
        return do

    def set(self, name: str, target: str, *texts: str) -> str:
        return manage.set_fault(self.instance, ROWS, name, target, list(texts))

    def clear(self, name: str | None = None, target: str | None = None) -> list[str]:
        return manage.clear(self.instance, ROWS, name, target)

    def states(self) -> list[tuple[str, str]]:
        return [(record.name, record.state) for record in store.read(self.instance)]

    def took(self) -> list[str]:
        done, self.done = self.done, []
        return done


@pytest.fixture(name="machine")
def fixture_machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Machine(monkeypatch, Path(directory))


def test_places(machine: Machine) -> None:
    there = scope.hosts(machine.instance)
    assert [host.leaf for host in there.values()] == ["", "leaf1", "leaf1", "leaf2"]

    def spots(name: str, target: str, **parameters: Any) -> list[tuple[str, Any]]:
        return [(spot.host, spot.values.get("port")) for spot in scope.places(there, ROWS[name], target, parameters)]

    assert spots("slow-rail", "gb1", rail=2, share=0.5) == [("gb1", "gb1-r2")]
    assert spots("slow-node", "gb1", share=0.5) == [("gb1", f"gb1-r{rail}") for rail in range(4)]
    assert spots("leaf-mtu", "leaf1", rail=1, mtu=1500) == [("gb1", "gb1-r1"), ("gb2", "gb2-r1")]
    assert spots("host-down", "login1") == [("login1", None)]
    values = scope.places(there, ROWS["lost-nic"], "gb2", {"rail": 1})[0].values
    assert (values["pci"], values["rdma"], values["rate"]) == ("0002:03:00.0", "mlx5_1", 40_000_000)
    assert set(values) == {*table.HOST_VALUES, *table.RAIL_VALUES}


@pytest.mark.parametrize(("argv", "text"), [
    (("slow-rial", "gb1"), "no fault 'slow-rial'; there are: slow-rail, slow-node"),
    (("slow-rail", "gb9"), "slow-rail: no host 'gb9'; there are: login1, gb1, gb2, epyc1"),
    (("slow-rail", "epyc1", "rail=1"), "host epyc1 has no rail 1; it has 0 to 0"),
    (("slow-rail", "login1"), "host login1 has no rails; with rails are: gb1, gb2, epyc1"),
    (("leaf-mtu", "gb1"), "no leaf 'gb1'; there are: leaf1, leaf2"),
    (("leaf-mtu", "leaf2", "rail=3"), "no host on leaf2 has a rail 3"),
    (("slow-rail", "gb1", "speed=1"), "unknown parameter 'speed=1'; there are: rail=0, share=0.5"),
])
def test_errors_name_what_there_is_and_change_nothing(machine: Machine, argv: tuple[str, ...], text: str) -> None:
    with pytest.raises(FaultError, match=text):
        machine.set(*argv)
    assert machine.took() == [] and machine.states() == []


def test_twice_changes_nothing(machine: Machine) -> None:
    machine.set("slow-rail", "gb1", "rail=1")
    assert machine.took() == ["set fabric gb1 tc qdisc change dev gb1-r1 root tbf rate 20000000bit " + fabric.BUCKET]
    assert machine.set("slow-rail", "gb1", "rail=1") == "slow-rail gb1 rail=1 share=0.5 is set already"
    with pytest.raises(FaultError, match="rate of gb1-r1 is changed by slow-rail gb1 rail=1 share=0.5 already; first: "
                                         "lab fault clear slow-rail gb1"):
        machine.set("slow-node", "gb1")
    assert machine.took() == []
    machine.set("slow-rail", "gb1", "rail=2")
    assert manage.show(machine.instance) == ["slow-rail gb1 rail=1 share=0.5", "slow-rail gb1 rail=2 share=0.5"]


def test_clear_by_name_and_host_or_all(machine: Machine) -> None:
    for argv in (("slow-rail", "gb1"), ("slow-rail", "gb2"), ("link-down", "gb1"), ("host-down", "gb2")):
        machine.set(*argv)
    assert machine.clear("slow-rail", "gb2") == ["slow-rail gb2 rail=0 share=0.5 is cleared"]
    assert machine.clear("slow-rail", "gb2") == ["no fault slow-rail on gb2 is set"]
    with pytest.raises(FaultError, match="no fault 'nope'"):
        machine.clear("nope")
    with pytest.raises(FaultError, match="no host or leaf 'gb7'"):
        machine.clear("slow-rail", "gb7")
    machine.took()
    machine.clear()
    assert [line.split(" ")[1] for line in machine.took()] == ["fabric", "fabric", "power"], "power last"
    assert machine.clear() == ["no fault is set"] and machine.states() == []


def test_steps_are_undone_in_the_other_order_and_tell_what_follows(machine: Machine) -> None:
    machine.set("lost-nic", "gb1", "rail=1")
    assert machine.took() == ["set hardware gb1 {'do': 'lose', 'rail': 1}", "set fabric gb1 ip link del gb1-r1"]
    assert machine.clear("lost-nic")[0].endswith("or a reboot brings it back.")
    assert machine.took() == ["clear fabric gb1", "clear hardware gb1 {'do': 'find', 'rail': 1}"]


def test_a_step_that_fails_takes_the_others_back(machine: Machine) -> None:
    machine.fail = "set fabric"
    with pytest.raises(FaultError, match="cannot set fabric gb1"):
        machine.set("lost-nic", "gb1")
    assert machine.took() == ["set hardware gb1 {'do': 'lose', 'rail': 0}", "clear fabric gb1",
                              "clear hardware gb1 {'do': 'find', 'rail': 0}"]
    assert machine.states() == []


def test_a_host_that_is_off(machine: Machine) -> None:
    machine.on.remove("gb1")
    with pytest.raises(FaultError, match="hung-tool gb1 tool=ibv_devinfo: host gb1 is off, and a boot ends this fault"):
        machine.set("hung-tool", "gb1")
    assert machine.set("missing-tool", "gb1").endswith("will be set at the next boot")
    assert machine.set("slow-rail", "gb1").endswith("is set"), "the switch is on"
    assert [line.split()[1] for line in machine.took()] == ["fabric"]
    assert machine.states() == [("missing-tool", "waiting"), ("slow-rail", "set")]
    boot(machine, "gb1")
    assert [line.split()[:2] for line in machine.took()] == [["set", "fabric"], ["set", "tool"]]
    assert machine.states() == [("missing-tool", "set"), ("slow-rail", "set")]
    machine.on.remove("gb1")
    assert machine.clear("missing-tool") == ["missing-tool gb1 tool=ibv_devinfo will be cleared at the next boot"]
    boot(machine, "gb1")
    assert [line.split()[:2] for line in machine.took()] == [["set", "fabric"], ["clear", "tool"]]
    assert machine.states() == [("slow-rail", "set")]


def boot(machine: Machine, host: str) -> None:
    machine.on.discard(host)
    manage.before_boot(machine.instance, host, "warm")
    machine.on.add(host)
    manage.after_boot(machine.instance, host, os.getpid())


def test_what_waits_and_is_cleared_before_the_boot_is_forgotten(machine: Machine) -> None:
    machine.on.remove("gb1")
    machine.set("missing-tool", "gb1")
    machine.clear()
    assert machine.states() == [] and machine.took() == []


def test_a_boot_ends_what_does_not_survive_it_on_its_own_host(machine: Machine) -> None:
    machine.set("hung-tool", "gb1")
    machine.set("hung-tool", "gb2")
    machine.set("leaf-mtu", "leaf1", "rail=0")
    machine.took()
    boot(machine, "gb1")
    assert machine.took() == ["set fabric gb1 ip link set gb1-r0 mtu 1500", "clear tool gb1 ibv_devinfo"]
    assert [(record.name, record.target) for record in store.read(machine.instance)] == [
        ("hung-tool", "gb2"), ("leaf-mtu", "leaf1")]


@pytest.mark.parametrize("state", ["setting", "clearing"])
def test_after_a_kill_the_next_command_finishes(machine: Machine, state: str) -> None:
    """The record is on disk before the change: a kill between them leaves ``state``."""
    machine.set("slow-rail", "gb1")
    done = machine.took()
    records = store.read(machine.instance)
    records[0].state = state
    store.write(machine.instance, records)
    assert machine.set("slow-rail", "gb1").endswith(" is set")
    assert machine.took() == done and machine.states() == [("slow-rail", "set")]
    records[0].state = state
    store.write(machine.instance, records)
    assert machine.clear("slow-rail", "gb1") == ["slow-rail gb1 rail=0 share=0.5 is cleared"]
    assert len(machine.took()) == 1 and machine.states() == []


def test_the_record_is_written_before_the_change(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(steps, "do", lambda *_rest: seen.append(machine.states()))
    machine.set("slow-rail", "gb1")
    machine.clear()
    assert seen == [[("slow-rail", "setting")], [("slow-rail", "clearing")]]


def test_a_struck_fault_is_not_armed_again(machine: Machine) -> None:
    machine.set("host-dies", "gb1")
    records = store.read(machine.instance)
    records[0].state = "fired"
    store.write(machine.instance, records)
    machine.on.remove("gb1")
    assert machine.set("host-dies", "gb1").endswith("is set already (has struck)")
    machine.took()
    machine.clear("host-dies", "gb1")
    assert machine.took() == ["clear watch gb1", "waited for gb1"]


def test_a_lab_that_is_not_up(machine: Machine) -> None:
    machine.instance.write(hosts=[])
    with pytest.raises(FaultError, match="unit is not up; start it with"):
        machine.set("slow-rail", "gb1")
