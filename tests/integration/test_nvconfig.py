# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware parameters on two hosts: written, pending, loaded by what loads them on each board, and bad input."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab_plugin import Lab, Labs, Play, labs, run_lab

# Minutes: `make full` runs these; `make test` has the molecule scenario of the role.
pytestmark = pytest.mark.slow

__all__ = ["labs"]
FLEET = "tests/integration/fleets/nvconfig.yml"
GB200, L40S = "nvgb1", "nvl40s1"
PCIS = {GB200: ["0000:03:00.0", "0002:03:00.0", "0010:03:00.0", "0012:03:00.0"],
        L40S: ["0000:41:00.0", "0000:c1:00.0"]}
ACTION = "aidc.gpu_cluster.mlx5_nvconfig"
MEMORY = "/var/lib/aidc/mlx5_nvconfig.json"
TOOL = "/usr/bin/mstconfig"
# One that is set already, one of each kind, one that is hidden until another is loaded.
PARAMETERS = {"CNP_802P_PRIO_P1": 6, "CNP_DSCP_P1": 40, "ROCE_ADAPTIVE_ROUTING_EN": True, "MULTIPATH_DSCP": "DSCP_1",
              "HOST_CHAINING_DESCRIPTORS[0..1]": [3, "0x4"], "ADVANCED_PCI_SETTINGS": 1,
              "PCI_WR_ORDERING": "force_relax"}
SET = {"CNP_DSCP_P1": "40", "ROCE_ADAPTIVE_ROUTING_EN": "True(1)", "MULTIPATH_DSCP": "DSCP_1(3)",
       "HOST_CHAINING_DESCRIPTORS[0]": "3", "HOST_CHAINING_DESCRIPTORS[1]": "4", "ADVANCED_PCI_SETTINGS": "True(1)"}
ARGUMENTS = ["CNP_DSCP_P1=40", "ROCE_ADAPTIVE_ROUTING_EN=True", "MULTIPATH_DSCP=DSCP_1",
             "HOST_CHAINING_DESCRIPTORS[0]=3", "HOST_CHAINING_DESCRIPTORS[1]=0x4", "ADVANCED_PCI_SETTINGS=1"]


@pytest.fixture(scope="module", name="lab")
def fixture_lab(labs: Labs) -> Iterator[Lab]:
    lab = labs("nvl", FLEET)
    for playbook in (("playbooks/packages.yml",), ("playbooks/fabric.yml", "--tags", "rdma_stack")):
        done = lab.play(*playbook, may_meet_nobody=True)
        assert done.code == 0, done.text[-3000:]
    yield lab


@pytest.fixture(scope="module", name="playbook")
def fixture_playbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nvconfig") / "play.yml"
    path.write_text("- hosts: all\n  gather_facts: false\n  roles: [aidc.gpu_cluster.mlx5_nvconfig]\n",
                    encoding="utf-8")
    return path


def run(lab: Lab, playbook: Path, *argv: str, **variables: Any) -> Play:
    values = {"mlx5_nvconfig_parameters": PARAMETERS, **variables}
    return lab.play(str(playbook), "-e", json.dumps(values), *argv)


def shown(lab: Lab, host: str, pci: str, *names: str) -> dict[str, list[str]]:
    """Default, current and next boot by the tool, without our parser."""
    lines = lab.inside(host, "mstconfig", "-d", pci, "-e", "q", *names).stdout.splitlines()
    words = [line.removeprefix("*").split() for line in lines]
    return {row[0]: row[1:] for row in words if row and row[0] in names}


def next_boot(lab: Lab, host: str, pci: str) -> dict[str, str]:
    return {name: values[2] for name, values in shown(lab, host, pci, *SET).items()}


def current(lab: Lab, host: str, pci: str) -> dict[str, str]:
    return {name: values[1] for name, values in shown(lab, host, pci, *SET).items()}


def answers(play: Play) -> dict[str, dict[str, Any]]:
    """Results of the module by host; the role's second task with it is skipped where the first one ran."""
    return {host: result for task in play.tasks for host, result in task["hosts"].items()
            if result.get("action") == ACTION and not result.get("skipped")}


def sets(result: dict[str, Any]) -> list[list[str]]:
    return [command for command in result["commands"] if command[0] != "write"]


@pytest.fixture(scope="module", name="first")
def fixture_first(lab: Lab, playbook: Path) -> dict[str, dict[str, Any]]:
    """Check mode, then the run; the results of the run."""
    before = {(host, pci): next_boot(lab, host, pci) for host in PCIS for pci in PCIS[host]}
    predicted = run(lab, playbook, "--check")
    assert predicted.code == 0, predicted.text[-3000:]
    assert {key: next_boot(lab, *key) for key in before} == before, "check mode wrote"
    done = run(lab, playbook)
    assert done.code == 0, done.text[-3000:]
    real = answers(done)
    for host, result in answers(predicted).items():
        for key in ("before", "after", "commands", "steps", "pending", "reset_required", "reboot_required",
                    "power_cycle_required"):
            assert result[key] == real[host][key], f"{host} {key}"
    return real


def test_one_set_per_device_with_all_that_differs(lab: Lab, first: dict[str, dict[str, Any]]) -> None:
    for host, pcis in PCIS.items():
        assert sets(first[host]) == [["mstconfig", "-y", "-d", pci, "set", *ARGUMENTS] for pci in pcis]
        assert {step["disruptive"] for step in first[host]["steps"]} == {"none"}
        for pci in pcis:
            assert next_boot(lab, host, pci) == SET
            assert current(lab, host, pci)["CNP_DSCP_P1"] == "48"


def test_what_is_pending_and_what_loads_it(first: dict[str, dict[str, Any]]) -> None:
    for host, result in first.items():
        for device in result["devices"]:
            states = {entry["name"]: entry["state"] for entry in device["parameters"]}
            assert states == {"CNP_802P_PRIO_P1": "set", "PCI_WR_ORDERING": "waiting", **dict.fromkeys(SET, "pending")}
            assert device["order"] == ["firmware_reset"]
            assert ("a reboot alone does not load them" in device["reason"]) is (host == GB200)
        assert (result["reset_required"], result["power_cycle_required"]) == (True, False)


def test_a_second_run_changes_nothing_while_it_is_pending(lab: Lab, playbook: Path, first: dict[str, Any]) -> None:
    again = run(lab, playbook)
    assert (again.code, again.changed()) == (0, {})
    for host, result in answers(again).items():
        assert result["commands"] == [] and result["reset_required"] is True
        record = json.loads((lab.inventory / ".state/mlx5_nvconfig" / f"{host}.json").read_text(encoding="utf-8"))
        assert record["data"]["devices"] == result["devices"]
    assert run(lab, playbook, mlx5_nvconfig_mode="verify").code == 0
    failing = run(lab, playbook, mlx5_nvconfig_fail_when_pending=True)
    assert failing.code != 0 and "CNP_DSCP_P1 runs with 48, wanted 40" in failing.text


def test_a_warm_reboot_loads_it_on_one_board_only(lab: Lab, playbook: Path, first: dict[str, Any]) -> None:
    for host in PCIS:
        run_lab("reboot", host, name=lab.instance.name)
    assert {pci: current(lab, L40S, pci) for pci in PCIS[L40S]} == dict.fromkeys(PCIS[L40S], SET)
    assert current(lab, GB200, PCIS[GB200][0])["CNP_DSCP_P1"] == "48"
    after = run(lab, playbook)
    assert after.code == 0
    results = answers(after)
    # What was hidden is set now, on the board that has loaded the rest.
    assert after.changed() == {L40S: 1}
    assert sets(results[L40S]) == [["mstconfig", "-y", "-d", pci, "set", "PCI_WR_ORDERING=force_relax"]
                                   for pci in PCIS[L40S]]
    assert results[GB200]["devices"][0]["reason"].startswith("A reboot since they were written did not load them.")
    # Without the tool that resets firmware the way is another one.
    lab.inside(GB200, "mv", "/usr/bin/mstfwreset", "/root/mstfwreset")
    blind = answers(run(lab, playbook, "--limit", GB200))[GB200]
    lab.inside(GB200, "mv", "/root/mstfwreset", "/usr/bin/mstfwreset")
    assert blind["power_cycle_required"] is True and blind["devices"][0]["order"] == ["power_cycle"]


def test_a_cold_reboot_loads_it(lab: Lab, playbook: Path, first: dict[str, Any]) -> None:
    for host in PCIS:
        run_lab("reboot", "--cold", host, name=lab.instance.name)
    for host, pcis in PCIS.items():
        assert [current(lab, host, pci) for pci in pcis] == [SET] * len(pcis)
    done = run(lab, playbook)
    assert done.changed() == {GB200: 1}, "what was hidden before"
    assert answers(done)[L40S]["pending"] == []
    run_lab("driver-reload", "--firmware-reset", GB200, name=lab.instance.name)
    done = run(lab, playbook, mlx5_nvconfig_fail_when_pending=True)
    assert (done.code, done.changed()) == (0, {})
    assert shown(lab, GB200, PCIS[GB200][3], "PCI_WR_ORDERING")["PCI_WR_ORDERING"][1:] == ["force_relax(1)"] * 2


def test_one_value_changed_behind_our_back(lab: Lab, playbook: Path, first: dict[str, Any]) -> None:
    pci = PCIS[L40S][1]
    lab.inside(L40S, "mstconfig", "-y", "-d", pci, "set", "CNP_DSCP_P1=46")
    seen = run(lab, playbook, "--limit", L40S, mlx5_nvconfig_mode="verify")
    assert seen.code != 0 and f"would run: mstconfig -y -d {pci} set CNP_DSCP_P1=40" in seen.text
    done = run(lab, playbook, "--limit", L40S)
    assert sets(answers(done)[L40S]) == [["mstconfig", "-y", "-d", pci, "set", "CNP_DSCP_P1=40"]]
    # It runs with 40 all the time, so nothing is pending.
    assert answers(done)[L40S]["pending"] == []


@pytest.mark.parametrize(("parameters", "text"), [
    ({"LINK_TYPE_P1": "ETH"}, "Ethernet-only cards have no link type"),
    ({"NO_SUCH": 1}, "0000:41:00.0 NO_SUCH: got a parameter that mstconfig or the firmware does not know"),
    ({"CNP_DSCP_P1": "many"}, "wanted a number like 48, 40"),
    ({"CNP_DSCP_P1": 64}, "Failed to set the configuration: Invalid argument"),
    ({"LLDP_NB_RX_MODE_P1": False}, "YAML makes booleans of ON, OFF"),
    ({"MULTIPATH_DSCP": "DSCP_9"}, "Unknown value DSCP_9"),
    ({"HOST_CHAINING_DESCRIPTORS": 1}, "write HOST_CHAINING_DESCRIPTORS[0..7] for all"),
    ({"USER_PROGRAMMABLE_CC": True}, "Failed to set the configuration"),
])
def test_bad_input_has_its_message_and_changes_nothing(lab: Lab, playbook: Path, parameters: dict[str, Any], text: str,
                                                       first: dict[str, Any]) -> None:
    before = lab.inside(L40S, "mstconfig", "-d", PCIS[L40S][0], "-e", "q").stdout
    done = run(lab, playbook, "--limit", L40S, mlx5_nvconfig_parameters=parameters)
    message = answers(done)[L40S]["msg"]
    assert done.code != 0 and text in message and message.endswith("Nothing was changed.")
    assert lab.inside(L40S, "mstconfig", "-d", PCIS[L40S][0], "-e", "q").stdout == before


def test_unknown_parameters_can_be_skipped_and_taken_away(lab: Lab, playbook: Path, first: dict[str, Any]) -> None:
    wanted = {"LINK_TYPE_P1": "ETH", "CNP_DSCP_P1": 40}
    done = run(lab, playbook, mlx5_nvconfig_parameters=wanted, mlx5_nvconfig_unknown_parameters="skip")
    assert (done.code, done.changed()) == (0, {})
    assert "LINK_TYPE_P1: not known to this firmware, skipped" in answers(done)[L40S]["pending"][0]
    without = {pci: {"LINK_TYPE_P1": None} for pci in PCIS[L40S]}
    done = run(lab, playbook, "--limit", L40S, mlx5_nvconfig_parameters=wanted, mlx5_nvconfig_device_parameters=without)
    assert (done.code, answers(done)[L40S]["pending"]) == (0, [])
    strange = run(lab, playbook, "--limit", L40S, mlx5_nvconfig_device_parameters={"0000:99:00.0": {}})
    assert strange.code != 0 and "got 0000:99:00.0, wanted PCI addresses of rails" in strange.text


@pytest.mark.parametrize(("script", "text"), [
    ("exec sleep 600", "no answer within 3 s"),
    ("echo '{{ garbage'", "output that cannot be read"),
    ("for word; do [ \"$word\" = set ] && exit 0; done; exec /root/mstconfig \"$@\"", "set once, read back, not tried"),
    ("", "install the package mstflint"),
])
def test_a_broken_tool(lab: Lab, playbook: Path, script: str, text: str, first: dict[str, Any]) -> None:
    lab.inside(L40S, "mv", TOOL, "/root/mstconfig")
    if script:
        lab.inside(L40S, "sh", "-c", f"printf '%s\\n' '#!/bin/sh' \"$1\" > {TOOL}; chmod 755 {TOOL}", "sh", script)
    start = time.monotonic()
    done = run(lab, playbook, "--limit", L40S, mlx5_nvconfig_parameters={"CNP_DSCP_P1": 41},
               mlx5_nvconfig_tool_timeout_seconds=3)
    seconds = time.monotonic() - start
    lab.inside(L40S, "sh", "-c", f"rm -f {TOOL}; mv /root/mstconfig {TOOL}")
    assert done.code != 0 and text in answers(done)[L40S]["msg"], done.text[-2000:]
    assert seconds < 60
    assert next_boot(lab, L40S, PCIS[L40S][0])["CNP_DSCP_P1"] == "40"


def test_the_link_type_of_a_vpi_card(lab: Lab, playbook: Path, first: dict[str, Any]) -> None:
    layer = "/sys/class/infiniband/mlx5_0/ports/1/link_layer"
    assert lab.inside(GB200, "cat", layer).stdout == "Ethernet\n"
    pci = PCIS[GB200][0]
    lab.inside(GB200, "mstconfig", "-y", "-d", pci, "set", "LINK_TYPE_P1=IB")
    run_lab("reboot", "--cold", GB200, name=lab.instance.name)
    assert lab.inside(GB200, "cat", layer).stdout == "InfiniBand\n"
    done = run(lab, playbook, "--limit", GB200, mlx5_nvconfig_parameters={"LINK_TYPE_P1": "ETH"})
    assert sets(answers(done)[GB200]) == [["mstconfig", "-y", "-d", pci, "set", "LINK_TYPE_P1=ETH"]]
    run_lab("reboot", "--cold", GB200, name=lab.instance.name)
    assert lab.inside(GB200, "cat", layer).stdout == "Ethernet\n"
