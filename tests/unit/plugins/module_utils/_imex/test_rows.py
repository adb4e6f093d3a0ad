# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of the field that a domain gets into, each with the legal state next to it."""
from __future__ import annotations

import os
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import CONFIG_FILE, NODES_FILE, UNIT

from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.holders import process, slurm_step
from tests.unit.plugins.imex_node import CHANNEL, CONFIG, OLD, VERSION, ImexNode, nodes, rack, settled, tray

TIMEOUT = Result((), "timeout", None, "", "no answer within 1 s; ended by us")


def refused(node: ImexNode, **options: t.Any) -> list[str]:
    """Objects of the problems; a refusal changes nothing."""
    before = node.files()
    with pytest.raises(AidcError) as caught:
        node.call(**options)
    assert caught.value.done == [] and node.files() == before
    assert not node.ran("systemctl", "start") and not node.ran("systemctl", "stop")
    return [f"{one.object}: {one.got}" for one in caught.value.problems]


def proof(node: ImexNode, trays: t.Sequence[ImexNode], **options: t.Any) -> list[str]:
    """Objects and values of the findings; nothing is changed by a question."""
    found = node.call(nodes=nodes(trays), state="ready", **options)
    assert (found["changed"], found["commands"]) == (False, [])
    assert found["ready"] is (found["findings"] == [])
    return [f"{one['object']}: {one['got']}" for one in found["findings"]]


# -- a domain that is made, and made again --------------------------------------------------------------------------


def test_a_new_domain_then_nothing_to_do(tmp_path: Path) -> None:
    trays = rack(tmp_path)
    for one in trays:
        found = one.call(nodes=nodes(trays), may_join=True)
        assert [step[:2] for step in found["commands"]] == [
            ["write", NODES_FILE], ["write", CONFIG_FILE], ["systemctl", "enable"], ["systemctl", "start"]]
    texts = {(one.root / NODES_FILE.lstrip("/")).read_bytes() for one in trays}
    assert texts == {b"192.0.2.1\n192.0.2.2\n192.0.2.3\n"}, "equal to the byte on all nodes"
    for one in trays:
        again = one.call(nodes=nodes(trays))
        assert (again["changed"], again["deferred"], again["restart_required"]) == (False, [], False)
        assert proof(one, trays) == []


def test_check_mode_says_what_the_run_does(tmp_path: Path) -> None:
    trays = rack(tmp_path)
    before = trays[0].files()
    predicted = trays[0].call(True, nodes=nodes(trays), may_join=True)
    assert trays[0].files() == before and not trays[0].ran("systemctl", "start")
    real = trays[0].call(nodes=nodes(trays), may_join=True)
    assert predicted == real


def test_a_list_that_is_new_here_waits_until_the_others_were_asked(tmp_path: Path) -> None:
    (one, *_others) = trays = rack(tmp_path)
    found = one.call(nodes=nodes(trays))
    assert (found["changed"], found["join_required"], found["restart_required"]) == (False, True, False)
    assert [entry["holder"] for entry in found["deferred"]] == ["nvlink_domain nvl1"]
    assert found["after"]["enabled"] is False, "at a boot it would start with a list that others may not have"
    assert one.call(nodes=nodes(trays), may_join=True)["running"] is True


def test_the_order_and_the_spelling_of_the_list_are_those_of_the_caller(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)
    one.change(addresses=["2001:db8::1"])
    one.call(nodes=["2001:db8::2", "2001:DB8:0::1"], may_join=True)
    assert one.get(NODES_FILE).split() == ["2001:db8::2", "2001:db8::1"]


def test_rejoin_after_a_reboot(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    trays[1].reboot()
    found = trays[1].call(nodes=nodes(trays))
    assert (found["changed"], found["running"], found["deferred"]) == (False, True, [])
    assert [proof(one, trays) for one in trays] == [[], [], []]


def test_a_tray_that_came_up_without_its_daemon_is_started(tmp_path: Path) -> None:
    """Its list is the one that it had, so it does not wait for the others."""
    trays = settled(tmp_path)
    trays[1].change(enabled="disabled")
    trays[1].reboot()
    assert proof(trays[1], trays) == [f"{UNIT}: inactive"]
    found = trays[1].call(nodes=nodes(trays))
    assert found["commands"] == [["systemctl", "enable", UNIT], ["systemctl", "start", UNIT]]
    assert proof(trays[0], trays) == []


# -- the list -------------------------------------------------------------------------------------------------------


def test_the_list_differs_on_one_node(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    trays[2].put(NODES_FILE, "192.0.2.1\n192.0.2.3\n")
    trays[2].reboot()
    found = trays[2].call(nodes=nodes(trays))
    assert (found["changed"], found["restart_required"], found["running"]) == (False, True, True)
    assert "is another list" in found["deferred"][0]["why"]
    # The nodes with the right list see it; waiting would not help, so it is not done.
    findings = proof(trays[0], trays, wait_seconds=600)
    assert findings[0].endswith("node map mismatch, communication disabled") and trays[0].now == 0
    assert not any("may_join" in entry["why"] for entry in found["deferred"])


def test_a_running_daemon_keeps_its_list_whatever_it_is_told(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    more = [*nodes(trays), "192.0.2.9"]
    for state in ("started", "configured"):
        assert trays[0].call(nodes=more, may_join=True, state=state)["changed"] is False
    assert trays[0].get(NODES_FILE).split() == nodes(trays)


def test_the_list_was_replaced_below_a_running_daemon(tmp_path: Path) -> None:
    """The files are as wanted and the daemon is older than they are: a run that was killed, or somebody's editor."""
    trays = settled(tmp_path)
    os.utime(trays[0].root / NODES_FILE.lstrip("/"), (time.time() + 60, time.time() + 60))
    found = trays[0].call(nodes=nodes(trays))
    assert found["restart_required"] is True and "changed after the daemon's start" in found["deferred"][0]["why"]
    assert trays[1].call(nodes=nodes(trays))["restart_required"] is False


def test_stop_all_write_all_start_all(tmp_path: Path) -> None:
    trays = settled(tmp_path, 2)
    more = [*trays, tray(tmp_path, 3)]
    for one in trays:
        assert one.call(nodes=nodes(more))["restart_required"] is True
        assert one.call(nodes=nodes(more), state="stopped")["commands"] == [["systemctl", "stop", UNIT]]
    for one in more:
        assert one.call(nodes=nodes(more), state="configured", may_join=True)["running"] is False
    for one in more:
        assert one.call(nodes=nodes(more), may_join=True)["commands"] == [["systemctl", "start", UNIT]]
    assert [proof(one, more) for one in more] == [[], [], []]


def test_a_restart_that_was_called_off(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    one.call(nodes=nodes(trays), state="stopped")
    found = one.call(nodes=[*nodes(trays), "192.0.2.9"], state="resumed")
    assert found["commands"] == [["systemctl", "start", UNIT]]
    assert one.get(NODES_FILE).split() == nodes(trays)
    assert one.call(nodes=nodes(trays), state="resumed")["changed"] is False


def test_no_local_address(tmp_path: Path) -> None:
    """The daemon would exit at once [dra-driver#289]."""
    (one, *_others) = trays = rack(tmp_path)
    assert refused(one, nodes=nodes(trays)[1:], may_join=True) == [f"{NODES_FILE}: no address of this node"]
    assert one.call(nodes=nodes(trays), may_join=True)["running"] is True


def test_two_local_addresses(tmp_path: Path) -> None:
    (one, *_others) = trays = rack(tmp_path)
    one.change(addresses=["192.0.2.1", "192.0.2.2"])
    assert refused(one, nodes=nodes(trays), may_join=True) == [
        f"{NODES_FILE}: 2 addresses of this node: 192.0.2.1, 192.0.2.2"]
    one.change(addresses=["192.0.2.1", "198.51.100.7"])
    assert one.call(nodes=nodes(trays), may_join=True)["running"] is True


@pytest.mark.parametrize(("given", "objects"), [
    ([], ["nodes: none"]), (["g1", "192.0.2.1"], ["nodes g1: no IP address"]),
    (["192.0.2.1", "192.0.2.1"], ["nodes 192.0.2.1: listed twice"])])
def test_a_list_that_is_none(tmp_path: Path, given: list[str], objects: list[str]) -> None:
    one = tray(tmp_path, 1)
    assert refused(one, nodes=given, may_join=True) == objects
    assert one.calls == []


# -- config.cfg -----------------------------------------------------------------------------------------------------


def test_config_is_merged_by_key(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)
    one.call(nodes=["192.0.2.1"], may_join=True, config={"SERVER_PORT": 50001, "IMEX_WAIT_FOR_QUORUM": "NONE"})
    assert (one.root / CONFIG_FILE.lstrip("/")).read_text(encoding="utf-8") == CONFIG.replace(
        "\nSERVER_PORT=50000", "\nSERVER_PORT=50001").replace(
        "\nIMEX_CMD_ENABLED=0", "\nIMEX_CMD_ENABLED=1") + "IMEX_WAIT_FOR_QUORUM=NONE\n"


def test_a_key_of_the_start_needs_a_restart_and_a_foreign_one_does_not(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    assert one.call(nodes=nodes(trays), config={"SERVER_PORT": "50000"})["restart_required"] is False
    found = one.call(nodes=nodes(trays), config={"SERVER_PORT": "50001"})
    assert (found["changed"], found["restart_required"]) == (False, True)
    assert "SERVER_PORT is 50000, wanted 50001" in found["deferred"][0]["why"]


@pytest.mark.parametrize("config", [{"IMEX_NODE_CONFIG_FILE": "/tmp/x"}, {"a b": "1"}, {"LOG_LEVEL": "1\nX=2"}])
def test_keys_that_are_refused(tmp_path: Path, config: dict[str, str]) -> None:
    one = tray(tmp_path, 1)
    assert len(refused(one, nodes=["192.0.2.1"], config=config)) == 1
    assert one.call(True, nodes=["192.0.2.1"], config={"IMEX_NODE_CONFIG_FILE": NODES_FILE})["owner"] == "host"


# -- owner ----------------------------------------------------------------------------------------------------------


def test_dra_stops_disables_and_masks(tmp_path: Path) -> None:
    (one, *_others) = settled(tmp_path)
    found = one.call(owner="dra")
    assert found["commands"] == [["systemctl", verb, UNIT] for verb in ("stop", "disable", "mask")]
    assert (found["after"]["active"], found["after"]["masked"]) == ("inactive", True)
    assert one.call(owner="dra")["changed"] is False
    one.daemon_of_a_pod()
    assert one.call(owner="dra")["changed"] is False, "that one is the DRA driver's, and right there"
    assert one.call(owner="dra", state="ready")["ready"] is None


def test_dra_waits_for_a_job(tmp_path: Path) -> None:
    (one, *_others) = settled(tmp_path)
    slurm_step(one.root, 4711, "python3", CHANNEL)
    found = one.call(owner="dra")
    assert (found["changed"], found["running"]) == (False, True)
    assert [entry["holder"] for entry in found["deferred"]] == ["Slurm job 4242 step 0 (pid 4711 python3)"]


@pytest.mark.parametrize("owner", ["host", "dra_over_host"])
def test_imex_while_dra_owns_it(tmp_path: Path, owner: str) -> None:
    (one, *_others) = trays = rack(tmp_path)
    one.daemon_of_a_pod()
    expected = ["nvidia-imex of pod 3f1b2c4d-0000-4000-8000-00000000000a container abababababab (pid 900)"]
    assert refused(one, nodes=nodes(trays), may_join=True, owner=owner) == [f"owner {owner}: {expected[0]}"]
    one.put("/proc/900/cgroup", f"0::/system.slice/{UNIT}\n")
    assert one.call(nodes=nodes(trays), may_join=True, owner=owner)["running"] is True


def test_back_from_dra(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    one.call(owner="dra")
    found = one.call(nodes=nodes(trays))
    assert found["commands"] == [["systemctl", verb, UNIT] for verb in ("unmask", "enable", "start")]


# -- who is in the way ----------------------------------------------------------------------------------------------


def test_a_job_holds_a_channel(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    slurm_step(one.root, 4711, "python3", CHANNEL)
    for policy in ("if_idle", "force"):
        found = one.call(nodes=nodes(trays), state="stopped", disruption_policy=policy)
        assert (found["changed"], found["running"], found["users_known"]) == (False, True, True)
        assert found["deferred"] == [{"holder": "Slurm job 4242 step 0 (pid 4711 python3)",
                                      "why": f"has {CHANNEL} open"}]


def test_a_step_without_a_channel_is_a_matter_of_policy(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    slurm_step(one.root, 4711, "python3")
    found = one.call(nodes=nodes(trays), state="stopped")
    assert [entry["why"] for entry in found["deferred"]] == ["runs on this node"]
    found = one.call(True, nodes=nodes(trays), state="stopped", disruption_policy="never")
    assert [entry["holder"] for entry in found["deferred"]] == ["disruption_policy"]
    assert one.call(nodes=nodes(trays), state="stopped", disruption_policy="force")["running"] is False


def test_services_with_the_driver_open_are_in_nobodys_way(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    process(one.root, 300, "nvidia-imex", "/dev/nvidiactl", CHANNEL, cgroup=f"/system.slice/{UNIT}")
    process(one.root, 301, "python3", "/dev/nvidia0")
    assert one.call(nodes=nodes(trays), state="stopped")["running"] is False


def test_a_process_of_a_pod_holds_a_channel(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    process(one.root, 500, "python3", CHANNEL, cgroup="/kubepods/burstable/pod3f1b2c4d-0000-4000-8000-00000000000a/x")
    found = one.call(nodes=nodes(trays), state="stopped")
    assert found["deferred"][0]["holder"].startswith("pod 3f1b2c4d-0000-4000-8000-00000000000a")


# -- versions -------------------------------------------------------------------------------------------------------


def test_the_package_is_not_the_drivers(tmp_path: Path) -> None:
    (one, *_others) = trays = rack(tmp_path)
    for package, got in ((OLD, f"package nvidia-imex: {OLD}"), ("", "package nvidia-imex: not installed")):
        one.change(package=package)
        assert refused(one, nodes=nodes(trays), may_join=True) == [got]
    one.change(package="580.126")
    assert one.call(nodes=nodes(trays), may_join=True)["running"] is True, "two parts of three are the same"


def test_a_package_that_moved_below_a_running_daemon(tmp_path: Path) -> None:
    """The upgrade waits for a reload of the driver. What runs is right and is not failed for it; a start is."""
    (one, *_others) = trays = settled(tmp_path)
    one.override[("dpkg-query",)] = lambda call: ok("nvidia-imex\t580.159.04-1\thold\tinstalled\n")
    found = one.call(nodes=nodes(trays))
    assert (found["changed"], [entry["object"] for entry in found["findings"]]) == (False, ["package nvidia-imex"])
    assert proof(one, trays) == []
    assert refused(one, nodes=[*nodes(trays), "192.0.2.9"]) == ["package nvidia-imex: 580.159.04"]
    one.change(active="inactive")
    assert refused(one, nodes=nodes(trays)) == ["package nvidia-imex: 580.159.04"]


def test_no_driver_is_loaded(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)
    one.load_driver(None)
    assert refused(one, nodes=["192.0.2.1"], may_join=True) == ["module nvidia: not loaded"]


def test_a_node_of_another_version(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    trays[1].change(package=OLD)
    findings = proof(trays[0], trays, wait_seconds=600)
    assert findings[:2] == [f"node 192.0.2.2: IMEX {OLD}",
                            "links 192.0.2.1 to 192.0.2.2, 192.0.2.2 to 192.0.2.1, 192.0.2.2 to 192.0.2.3 and 1 more: "
                            "version mismatch, communication disabled"]
    assert trays[0].now == 0, "a mismatch stays"
    trays[1].change(package=VERSION)
    assert proof(trays[0], trays) == []


# -- the proof ------------------------------------------------------------------------------------------------------


def test_a_tray_is_down(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    trays[2].change(active="inactive")
    assert proof(trays[0], trays, wait_seconds=10) == ["node 192.0.2.3: UNAVAILABLE", "state of the domain: DEGRADED"]
    assert 6 <= trays[0].now <= 10, "it waited, within its bound"


def test_it_waits_for_a_tray_that_comes(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    trays[2].change(active="inactive")

    def sleep(seconds: float) -> None:
        trays[0].now += seconds
        if trays[0].now >= 6:
            trays[2].start()

    trays[0].sleep = sleep  # type: ignore[method-assign]
    assert proof(trays[0], trays, wait_seconds=60) == []
    assert trays[0].now == 6


def test_a_domain_of_one_node_proves_nothing_of_others(tmp_path: Path) -> None:
    (one,) = trays = settled(tmp_path, 1)
    found = one.call(nodes=nodes(trays), state="ready")
    assert (found["ready"], found["proven_nodes"]) == (True, 0)
    assert proof(one, [one, tray(tmp_path, 2)], wait_seconds=0) == ["nodes of the domain: no 192.0.2.2"]
    both = settled(tmp_path / "both", 2)
    assert both[0].call(nodes=nodes(both), state="ready")["proven_nodes"] == 2


def test_a_node_that_is_not_of_the_inventory(tmp_path: Path) -> None:
    trays = settled(tmp_path)
    assert proof(trays[0], trays[:2], wait_seconds=0) == ["nodes of the domain: also 192.0.2.3"]


@pytest.mark.parametrize(("answer", "got"), [
    (Result((), "missing"), "the program is not installed"), (TIMEOUT, "no answer within 1 s; ended by us"),
    (failed(1, "Failed to connect\n"), "exit status 1: Failed to connect"),
    (ok("ERROR: no such thing\n"), "output that cannot be read (no state of a daemon): ERROR: no such thing"),
    (ok(""), "output that cannot be read (no state of a daemon): nothing"),
    (ok("WAITING_FOR_RECOVERY\n"), "WAITING_FOR_RECOVERY")])
def test_the_daemons_answer_is_none(tmp_path: Path, answer: Result, got: str) -> None:
    (one, *_others) = trays = settled(tmp_path)
    one.override[("nvidia-imex-ctl", "-q")] = lambda call: answer
    (finding,) = proof(one, trays, wait_seconds=4)
    assert finding.partition(": ")[2] == got


@pytest.mark.parametrize(("answer", "got"), [
    (Result((), "missing"), "the program is not installed"), (TIMEOUT, "no answer within 1 s; ended by us"),
    (ok("Error: service is off\n"), "output that cannot be read (no line Node #): Error: service is off"),
    (failed(1, "no\n"), "exit status 1: no")])
def test_the_domains_answer_is_none(tmp_path: Path, answer: Result, got: str) -> None:
    """READY of the node itself is no answer for the domain; a hanging tool is asked with a bound, and once a try."""
    (one, *_others) = trays = settled(tmp_path)
    one.override[("nvidia-imex-ctl", "-N")] = lambda call: answer
    (finding,) = proof(one, trays, wait_seconds=0)
    assert finding.partition(": ")[2] == got
    assert len(one.ran("nvidia-imex-ctl", "-N")) == (1 if answer.state in ("missing", "timeout") else 2)


def test_a_build_without_json(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    one.override[("nvidia-imex-ctl", "-N", "-j")] = lambda call: failed(1, "unknown option -j\n")
    assert proof(one, trays) == []


# -- what fails half way --------------------------------------------------------------------------------------------


def test_a_start_that_fails_names_the_log(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)
    one.override[("systemctl", "start")] = lambda call: failed(1, "Job failed\n")
    with pytest.raises(AidcError) as caught:
        one.call(nodes=["192.0.2.1"], may_join=True)
    assert caught.value.problems[0].hint == f"journalctl -u {UNIT}; /var/log/nvidia-imex.log"
    assert [command[0] for command in caught.value.done] == ["write", "write", "systemctl"]


@pytest.mark.parametrize(("verb", "state"), [("start", "started"), ("stop", "stopped")])
def test_a_command_without_effect_is_no_success(tmp_path: Path, verb: str, state: str) -> None:
    one = tray(tmp_path, 1) if verb == "start" else settled(tmp_path, 1)[0]
    one.override[("systemctl", verb)] = lambda call: ok()
    with pytest.raises(AidcError) as caught:
        one.call(nodes=["192.0.2.1"], may_join=True, state=state)
    assert caught.value.problems[0].object == UNIT


def test_systemd_that_does_not_answer(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    one.override[("systemctl", "show")] = lambda call: failed(1, "Failed to connect to bus\n")
    assert refused(one, nodes=nodes(trays))[0].startswith("systemctl show -p")
