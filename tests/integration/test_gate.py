# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate on real traffic. Faults are set by plain tools (tc, ip, kill), never by our own code.

What the search for the culprit makes of faults takes minutes and is in test_gate_search.py.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import fabric
from tests.integration.conftest import BIN, CLASS_HOSTS, ROOT, Lab, Play, lab_command, run_lab
from tools import runner_demo

NO_SEARCH = ("-e", "nccl_gate_search=never")
GB, L4 = CLASS_HOSTS["gb200"], CLASS_HOSTS["l40s"]
RAIL2 = "enP16p3s0f0np0"
PROGRAM = "all_reduce_perf"


def gate(lab: Lab, *arguments: str) -> tuple[Play, dict[str, Any]]:
    """Run the gate without a search; returns the play and the stored report of each pool."""
    reports = lab.inventory / ".state" / "gate"
    for left in reports.glob("*.json"):
        left.unlink()
    done = lab.play("playbooks/gate.yml", *NO_SEARCH, *arguments)
    assert "Traceback" not in done.text
    return done, {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in reports.glob("*.json")}


def state(report: dict[str, Any]) -> str:
    return str(report["state"])


def leftovers(lab: Lab) -> dict[str, str]:
    """What a run must not leave on any host: keys, authorised lines of runs, processes."""
    found = {}
    for host in GB + L4:
        script = (f"pgrep -fa '{PROGRAM}|prterun|prted|mpirun'; find /home/ops/.aidc /run/aidc -name 'id*'; "
                  "grep -n aidc-run /home/ops/.ssh/authorized_keys")
        text = lab.inside(host, "sh", "-c", script, check=False).stdout
        lines = [line for line in text.splitlines() if "pgrep" not in line and "sh -c" not in line]
        if lines:
            found[host] = "\n".join(lines)
    return found


def transmitted(lab: Lab, host: str) -> dict[str, int]:
    """Bytes that the kernel counted, by rail."""
    links = json.loads(lab.inside(host, "ip", "-j", "-s", "link").stdout)
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links if "np0" in link["ifname"]}


@contextlib.contextmanager
def shaped(lab: Lab, host: str, interface: str, rate: str) -> Iterator[None]:
    lab.inside(host, "tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst", "32k",
               "latency", "100ms")
    try:
        yield
    finally:
        lab.inside(host, "tc", "qdisc", "del", "dev", interface, "root")


def test_fault_free_gate_passes_and_the_kernel_counted_the_same_bytes(configured: Lab) -> None:
    before = {host: transmitted(configured, host) for host in GB}
    done, reports = gate(configured)
    assert done.code == 0, done.text[-3000:]
    assert {pool: report["label"] for pool, report in reports.items()} == {
        "gb200": "PASS (SIMULATED)", "l40s": "PASS (SIMULATED)", "epyc9754": reports["epyc9754"]["label"]}
    assert reports["epyc9754"]["label"].startswith("NOT TESTED")
    assert all(report["simulated"] for pool, report in reports.items() if pool != "epyc9754")
    assert done.changed() == {}
    # 4 hosts x 4 ranks, one size of 4 MiB on 4 rails: a warm-up, then two placements of one first,
    # two timed and one checked collective (lab/standin/README.md, "How much it sends").
    collectives, ranks, size = 1 + 2 * (1 + 2 + 1), 16, 4 << 20
    expected = 2 * (ranks - 1) / ranks * size / 4 * collectives
    for host in GB:
        after = transmitted(configured, host)
        for rail, bytes_before in before[host].items():
            assert after[rail] - bytes_before == pytest.approx(expected, rel=0.10), (host, rail)
    # And the printed figure is what those bytes took on a link of this rate.
    assert reports["gb200"]["result"]["peak_busbw_gbps"] == pytest.approx(4 * fabric.scaled_bit(400) / 8e9, rel=0.10)
    assert leftovers(configured) == {}


def test_a_rail_slowed_by_tc_fails_its_pool_alone_and_passes_when_restored(configured: Lab) -> None:
    with shaped(configured, "gb2", RAIL2, "20mbit"):
        done, reports = gate(configured)
        assert done.code != 0
        assert state(reports["gb200"]) == "SLOW"
        assert reports["gb200"]["result"]["peak_busbw_gbps"] == pytest.approx(0.010, rel=0.15)
        assert state(reports["l40s"]) == "PASS"
        assert "gb200" in done.text and "SLOW" in done.text
    done, reports = gate(configured)
    assert done.code == 0, done.text[-3000:]
    assert state(reports["gb200"]) == "PASS"


def leaf_ports(lab: Lab, mtu: int) -> None:
    for host in GB:
        fabric.run(["ip", "-n", lab.instance.fabric, "link", "set", f"{host}-r2", "mtu", str(mtu)])


def test_mtu_too_small_on_one_leaf_is_named_with_both_ends(configured: Lab) -> None:
    leaf_ports(configured, 1500)
    try:
        done, reports = gate(configured)
    finally:
        leaf_ports(configured, fabric.LEAF_MTU_BYTES)
    assert done.code != 0
    assert state(reports["gb200"]) == "PATH"
    text = json.dumps(reports["gb200"])
    assert RAIL2 in text
    assert all(host in text for host in GB)
    # The other leaves carry full packets and are not blamed.
    assert "enp3s0f0np0" not in reports["gb200"]["reason"]
    assert state(reports["l40s"]) == "PASS"
    assert leftovers(configured) == {}


class Background:
    """The gate running while a test breaks something."""

    def __init__(self, lab: Lab) -> None:
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        environment.pop("PYTHONPATH", None)
        self.lab = lab
        self.process = subprocess.Popen(
            [str(BIN / "ansible-playbook"), "-i", str(lab.inventory), "playbooks/gate.yml", *NO_SEARCH],
            cwd=ROOT, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
            start_new_session=True)

    def wait_for_rank(self, host: str) -> int:
        """The process id, inside the host, of its rank once it runs."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.lab.inside(host, "pgrep", "-x", PROGRAM, check=False).stdout.split()
            if found:
                time.sleep(1.0)
                return int(found[0])
            time.sleep(0.2)
        raise AssertionError(f"no rank on {host} after 60 s")

    def finish(self) -> tuple[int, str, dict[str, Any]]:
        text = self.process.communicate(timeout=240)[0]
        reports = {path.stem: json.loads(path.read_text(encoding="utf-8"))
                   for path in (self.lab.inventory / ".state" / "gate").glob("*.json")}
        return self.process.returncode, text, reports


def kill_rank(lab: Lab, pid: int) -> None:
    lab.inside("gb3", "kill", "-9", str(pid))


def stop_rank(lab: Lab, pid: int) -> None:
    lab.inside("gb3", "kill", "-STOP", str(pid))


def kill_host(lab: Lab, _pid: int) -> None:
    """Power lost: every process of the host is gone at once, its supervisor too."""
    (lab.instance.host_cgroup("gb3") / "cgroup.kill").write_text("1", encoding="ascii")


@pytest.mark.parametrize(("break_it", "states"), [
    (kill_rank, {"CRASH"}), pytest.param(stop_rank, {"HANG"}, marks=pytest.mark.slow)])
def test_a_rank_that_dies_or_stops_is_its_own_result(
        configured: Lab, break_it: Callable[[Lab, int], None], states: set[str]) -> None:
    run = Background(configured)
    break_it(configured, run.wait_for_rank("gb3"))
    code, text, reports = run.finish()
    assert code != 0
    assert state(reports["gb200"]) in states, text[-3000:]
    assert state(reports["l40s"]) == "PASS"
    assert leftovers(configured) == {}


def test_wrong_sums_are_their_own_result(configured: Lab) -> None:
    configured.inside("gb2", "sh", "-c", "mkdir -p /run/aidc-lab; echo 4 > /run/aidc-lab/corrupt-rank")
    try:
        done, reports = gate(configured)
    finally:
        configured.inside("gb2", "rm", "-r", "/run/aidc-lab")
    assert done.code != 0
    assert state(reports["gb200"]) == "WRONG"
    assert state(reports["l40s"]) == "PASS"


@pytest.mark.slow
def test_a_gate_that_fails_names_what_was_changed_since_the_pass_and_rollback_takes_it_back(configured: Lab) -> None:
    assert gate(configured)[0].code == 0
    change = ("playbooks/fabric.yml", "--tags", "roce_qos", "--limit", L4[0])
    assert configured.play(*change, "-e", "roce_qos_dscp=28").changed().keys() == {L4[0]}
    with shaped(configured, L4[0], "enp193s0f0np0", "10mbit"):
        done, reports = gate(configured)
    assert done.code != 0 and (state(reports["gb200"]), state(reports["l40s"])) == ("PASS", "SLOW")
    named = [line for line in done.text.splitlines() if "changed since the pass of" in line]
    assert len(named) == 1 and f"{L4[0]}: changed since the pass of" in named[0], named
    assert "roce_qos: dscp was 26, is 28" in named[0]
    assert configured.play("playbooks/rollback.yml", "--limit", ":".join(L4)).changed().keys() == {L4[0]}
    assert configured.play(*change).changed() == {}
    with shaped(configured, L4[0], "enp193s0f0np0", "10mbit"):
        done, _reports = gate(configured)
    assert done.code != 0 and "changed since the pass of" not in done.text
    assert gate(configured)[0].code == 0


@pytest.mark.slow  # four minutes
@pytest.mark.timeout(900)
def test_ten_fault_free_gates_pass_beside_a_busy_core(configured: Lab) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    figures: dict[str, list[float]] = {"gb200": [], "l40s": []}
    try:
        for number in range(10):
            done, reports = gate(configured)
            assert done.code == 0, f"run {number + 1}: {done.text[-3000:]}"
            for pool, values in figures.items():
                values.append(reports[pool]["result"]["peak_busbw_gbps"])
    finally:
        busy.kill()
        busy.wait()
    for pool, values in figures.items():
        print(f"spread of {pool}: {min(values):.4f} to {max(values):.4f} GB/s")


@pytest.mark.slow  # site.yml once more
def test_controller_killed_in_the_gate_leaves_nothing_after_the_next_site(configured: Lab) -> None:
    run = Background(configured)
    run.wait_for_rank("gb1")
    os.killpg(run.process.pid, signal.SIGKILL)
    run.process.communicate()
    assert leftovers(configured), "the kill came too late: nothing was left to sweep"
    done = configured.play("site.yml")
    assert done.code == 0, done.text[-3000:]
    assert done.changed() == {}
    assert leftovers(configured) == {}


@pytest.mark.slow  # site.yml and the gate once more
def test_ansible_runner_runs_the_site(configured: Lab, tmp_path: Path) -> None:
    """What `make runner-demo` does; that its search for secrets finds one is shown on a planted one."""
    argv = [str(BIN / "python"), "tools/runner_demo.py", "--inventory", str(configured.inventory),
            "--into", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "pool gb200: passed" in done.stdout and "pool epyc9754: skipped" in done.stdout
    events = tmp_path / "artifacts" / "site" / "job_events"
    assert len(list(events.glob("*.json"))) > 100
    assert runner_demo.secrets(events) == []
    for planted in ("-----BEGIN OPENSSH PRIVATE KEY-----", '"ansible_become_password": "hunter2"'):
        (events / "x").write_text(planted, encoding="utf-8")
        assert runner_demo.secrets(events) == [str(events / "x")]


@pytest.mark.slow  # a host has to come back, and site.yml once more; test_faults kills a host, too
def test_host_that_dies_is_named_and_no_pass(configured: Lab) -> None:
    """Last, as it takes the lab's host away; up puts it back for whoever comes after."""
    run = Background(configured)
    run.wait_for_rank("gb3")
    kill_host(configured, 0)
    code, text, reports = run.finish()
    assert code != 0
    assert state(reports["gb200"]) in {"CRASH", "INCOMPLETE", "LAUNCH"}, text[-3000:]
    assert "gb3" in json.dumps(reports["gb200"])
    run_lab("up", "--inventory", str(configured.inventory))
    assert configured.play("site.yml").code == 0
    assert subprocess.run(lab_command("status"), cwd=ROOT, capture_output=True, text=True, check=True
                          ).stdout.count("running") == 8
