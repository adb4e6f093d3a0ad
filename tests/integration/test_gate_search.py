# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who makes the pool slow: the gate's search on real traffic.

The faults are plain `tc`, `ip` and `kill`; no table and no file tells the stand-in what to print. After each row the
hosts are as before: no key, no process, no file, no rate.
"""
from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab import fabric
from tests.integration.conftest import BIN, ROOT
from tests.lab_plugin import Lab, Labs

NAME = "search"
FLEET = Path(__file__).parent / "fleets" / "search.yml"
HOSTS = ["ga1", "ga2", "gb1", "gb2"]
RAILS = ["enp65s0f0np0", "enp193s0f0np0"]
PROGRAM = "all_reduce_perf"
# Half of a rail's rate at the lab's scale.
RATE = ["tbf", "rate", "10mbit", "burst", "32k", "latency", "100ms"]
# What a run could leave: files of the user and in temporary folders (of the kept logs only the folder), keys, processes
# with the run's mark or of the launcher, rates.
LEFT = r"""
find /home/ops /tmp /var/tmp /run/aidc* /dev/shm -path '*/.aidc/logs/*' -prune -o -printf '%p %y\n' 2>/dev/null
cat /home/ops/.ssh/authorized_keys /home/ops/.ssh/known_hosts 2>/dev/null
grep -lz '^AIDC_NCCL_RUN_ID=' /proc/[0-9]*/environ 2>/dev/null | sed 's/^/marked /'
ps -eo comm= | grep -E 'perf$|mpirun|prte|^ssh$' | sed 's/^/process /'
tc qdisc show
"""


@dataclass(frozen=True)
class Gate:
    code: int
    text: str
    report: dict[str, Any]
    page: str
    junit: str

    @property
    def culprits(self) -> list[str]:
        return list((self.report["search"] or {}).get("culprits", []))


class Fleet:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.folder = lab.inventory / ".state" / "gate"

    def argv(self, *arguments: str) -> list[str]:
        return [str(BIN / "ansible-playbook"), "-i", str(self.lab.inventory), "playbooks/gate.yml", *arguments]

    def environment(self) -> dict[str, str]:
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                       "LC_ALL": "C.UTF-8"}
        environment.pop("PYTHONPATH", None)
        return environment

    def gate(self, *arguments: str) -> Gate:
        """As an operator calls it, with what he sees and finds afterwards."""
        for name in ("l40s.json", "l40s.html", "gate.junit.xml"):
            (self.folder / name).unlink(missing_ok=True)
        done = subprocess.run(self.argv(*arguments), cwd=ROOT, env=self.environment(), capture_output=True, text=True,
                              check=False, timeout=900, stdin=subprocess.DEVNULL)
        # The screen breaks lines at its width.
        text = " ".join((done.stdout + done.stderr).split())
        assert "Traceback" not in text and (self.folder / "l40s.json").exists(), text[-6000:]
        page = self.folder / "l40s.html"
        return Gate(done.returncode, text, json.loads((self.folder / "l40s.json").read_text(encoding="utf-8")),
                    page.read_text(encoding="utf-8") if page.exists() else "",
                    (self.folder / "gate.junit.xml").read_text(encoding="utf-8"))

    def stored(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / "l40s.search.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {"done": False, "search": {"outcomes": []}}

    def picture(self) -> dict[str, list[str]]:
        found = {host: sorted(self.lab.inside(host, "sh", "-c", LEFT).stdout.splitlines()) for host in HOSTS}
        shaped = fabric.run(["tc", "-n", self.lab.instance.fabric, "qdisc", "show"])
        links = json.loads(fabric.run(["ip", "-n", self.lab.instance.fabric, "-j", "link"]))
        found["fabric"] = sorted([*shaped.splitlines(), *(f"{one['ifname']} {one.get('master')}" for one in links)])
        return found

    @contextlib.contextmanager
    def slow(self, host: str, *interfaces: str) -> Iterator[None]:
        for interface in interfaces:
            self.lab.inside(host, "tc", "qdisc", "add", "dev", interface, "root", *RATE)
        try:
            yield
        finally:
            for interface in interfaces:
                self.lab.inside(host, "tc", "qdisc", "del", "dev", interface, "root")

    @contextlib.contextmanager
    def slow_between_leaves(self) -> Iterator[None]:
        """The ports of gb1 and gb2 go to switches of their own, joined by a cable of half the rate on each rail."""
        namespace = ["-n", self.lab.instance.fabric]
        moved = [f"{host}-r{rail}" for host in ("gb1", "gb2") for rail in range(len(RAILS))]
        try:
            for rail in range(len(RAILS)):
                mtu = ["mtu", str(fabric.LEAF_MTU_BYTES)]
                fabric.run(["ip", *namespace, "link", "add", f"b-r{rail}", "type", "bridge"])
                fabric.run(["ip", *namespace, "link", "set", f"b-r{rail}", *mtu, "up"])
                fabric.run(["ip", *namespace, "link", "add", f"up-r{rail}", "type", "veth", "peer", f"down-r{rail}"])
                for end, bridge in ((f"up-r{rail}", f"leaf1-r{rail}"), (f"down-r{rail}", f"b-r{rail}")):
                    fabric.run(["ip", *namespace, "link", "set", end, "master", bridge, *mtu, "up"])
                    fabric.run(["tc", *namespace, "qdisc", "add", "dev", end, "root", *RATE])
            for port in moved:
                fabric.run(["ip", *namespace, "link", "set", port, "master", f"b-r{port[-1]}"])
            yield
        finally:
            for port in moved:
                fabric.run(["ip", *namespace, "link", "set", port, "master", f"leaf1-r{port[-1]}"])
            for rail in range(len(RAILS)):
                for device in (f"up-r{rail}", f"b-r{rail}"):
                    subprocess.run(["ip", *namespace, "link", "del", device], check=False, capture_output=True)

    @contextlib.contextmanager
    def stopped_ranks(self, host: str) -> Iterator[None]:
        """Whoever becomes a rank on this host is stopped, and holds its peers up without a word."""
        self.lab.inside(host, "sh", "-c", f"touch /run/stop-ranks; (while [ -e /run/stop-ranks ]; do "
                        f"pkill -STOP -x {PROGRAM}; sleep 0.2; done) >/dev/null 2>&1 </dev/null &")
        try:
            yield
        finally:
            self.lab.inside(host, "rm", "/run/stop-ranks")


@pytest.fixture(scope="module")
def configured(labs: Labs) -> Iterator[Fleet]:
    with labs.during(NAME, FLEET) as lab:
        for playbook in ("packages", "fabric", "gpu"):
            done = lab.play(f"playbooks/{playbook}.yml")
            assert done.code == 0, done.text[-4000:]
        fleet = Fleet(lab)
        first = fleet.gate()
        assert (first.code, first.report["label"], first.report["search"]) == (0, "PASS (SIMULATED)", None), first.text
        yield fleet


@pytest.fixture
def fleet(configured: Fleet) -> Iterator[Fleet]:
    before = configured.picture()
    yield configured
    after = configured.picture()
    left = {place: sorted(set(after[place]) ^ set(lines)) for place, lines in before.items()}
    assert left == {place: [] for place in before}


def blamed(done: Gate, *nodes: str) -> None:
    """The nodes that may be drained, in all the forms of the report, and nobody else."""
    conclusion = done.report["search"]["conclusion"]
    assert conclusion["bad_nodes"] == sorted(nodes) and conclusion["done"], conclusion
    suites = re.findall(r'<testcase classname="gate[^"]* l40s" name="(\w+)"[^/>]*(/?)>', done.junit)
    assert sorted(name for name, _passed in suites) == HOSTS, done.junit
    assert sorted(name for name, passed in suites if not passed) == sorted(nodes), done.junit
    assert "SIMULATED" in done.page
    for culprit in done.culprits:
        assert f"culprit {culprit}" in done.text and f"culprit {culprit}" in done.report["reason"]


@pytest.mark.slow  # a minute
def test_without_a_fault_nobody_is_blamed(fleet: Fleet) -> None:
    done = fleet.gate("-e", "nccl_gate_search=always")
    assert (done.code, done.report["label"]) == (0, "PASS (SIMULATED)"), done.text[-3000:]
    blamed(done)
    assert (done.culprits, done.report["search"]["conclusion"]["verdict"]) == ([], "PASS")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_slow_rail_of_one_node_is_named_with_its_device(fleet: Fleet) -> None:
    with fleet.slow("ga2", RAILS[1]):
        done = fleet.gate()
    assert (done.code, done.report["state"], done.report["stage"]) == (2, "SLOW", "search"), done.text[-3000:]
    blamed(done, "ga2")
    (line,) = done.culprits
    found = re.match(r"ga2 rail 1 \(mlx5_1\): (0\.\d+) of its other rails in \d+ runs$", line)
    assert found and float(found[1]) == pytest.approx(0.5, abs=0.08), line
    assert done.report["search"]["conclusion"]["verified"], "the other three pass"
    # Repaired, it passes, and nobody speaks of the old search.
    again = fleet.gate()
    assert (again.code, again.report["search"], again.page) == (0, None, ""), again.text[-3000:]
    assert fleet.stored()["search"]["outcomes"] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_node_that_is_slow_on_all_rails_is_named_as_a_node(fleet: Fleet) -> None:
    with fleet.slow("gb1", *RAILS):
        done = fleet.gate()
    assert (done.code, done.report["state"]) == (2, "SLOW"), done.text[-3000:]
    blamed(done, "gb1")
    (line,) = done.culprits
    found = re.match(r"gb1: (0\.\d+) of its peers in \d+ runs$", line)
    assert found and float(found[1]) == pytest.approx(0.5, abs=0.08), line


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_slow_path_between_two_leaves_is_named_and_no_node(fleet: Fleet) -> None:
    with fleet.slow_between_leaves():
        done = fleet.gate()
    assert (done.code, done.report["state"]) == (2, "SLOW"), done.text[-3000:]
    blamed(done)
    (line,) = done.culprits
    assert line.startswith("path of leaf a to leaf b (seen with g") and "of its peers" in line, line


@pytest.mark.slow
@pytest.mark.timeout(1500)  # each hang takes its time limit
def test_a_node_whose_ranks_hang_is_named(fleet: Fleet) -> None:
    with fleet.stopped_ranks("gb2"):
        done = fleet.gate("-e", "nccl_gate_time_limit_seconds=30", "-e", "nccl_gate_search=always")
    assert (done.code, done.report["state"]) == (2, "HANG"), done.text[-3000:]
    blamed(done, "gb2")
    (line,) = done.culprits
    assert re.match(r"gb2: hangs in \d+ runs$", line), line
    assert done.report["left_behind"] == [] and done.report["search"]["notes"] == []


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_next_run_goes_on_where_a_killed_controller_was(fleet: Fleet) -> None:
    with fleet.slow("ga2", RAILS[1]):
        process = subprocess.Popen(fleet.argv(), cwd=ROOT, env=fleet.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            deadline = time.monotonic() + 400
            # In the middle of the pairs.
            while len(fleet.stored()["search"]["outcomes"]) < 6:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.5)
            time.sleep(2)
        finally:
            # Ansible's workers have sessions of their own and are not hit: that of the search ends after its batch.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        known = fleet.stored()
        assert not known["done"] and any("id_ed25519" in line or line.endswith("/id f")
                                         for line in fleet.picture()["ga1"]), "the kill came too late"
        done = fleet.gate()
    assert (done.code, done.report["state"]) == (2, "SLOW"), done.text[-3000:]
    assert done.report["search"]["resumed"] and "goes on with the search of" in done.text
    count = len(known["search"]["outcomes"])
    assert fleet.stored()["search"]["outcomes"][:count] == known["search"]["outcomes"]
    resumed_with = re.search(r"goes on with the search of \d+ s ago, (\d+) runs are known", done.text)
    assert resumed_with and count <= int(resumed_with[1]) <= count + 2, "one batch more at most"
    assert fleet.stored()["search"]["seed"] == known["search"]["seed"]
    blamed(done, "ga2")
    assert [line.partition(":")[0] for line in done.culprits] == ["ga2 rail 1 (mlx5_1)"]
