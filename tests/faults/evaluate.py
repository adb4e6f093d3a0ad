# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run rows on a configured lab, round by round: set, detect, undo, prove clean."""
from __future__ import annotations

import functools
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from lab.faults.table import FaultError
from lab.hardware import door
from lab.instance import Instance, LabError
from tests.faults import judge, picture, places, steps
from tests.faults.detect import Ansible, Finding, Round
from tests.faults.rows import Detector, Pair, Row
from tests.faults.schedule import Job, jobs, rounds

T = TypeVar("T")
CLEAN_SECONDS = 15.0
# With other variables than those of the set-up the host's intent is out of date, which is no part of a row.
NO_INTENT = {**{f"{role}_persistent": False for role in ("mlx5_port", "roce_qos", "roce_gid", "rail_network")},
             "fabric_boot_mode": "off"}
MTU_BYTES = 4200
Verdict = Literal["detected", "no finding", "FAILED"]


@dataclass
class Result:
    name: str
    phase: str
    host: str
    verdict: Verdict
    seconds: float = 0.0
    why: list[str] = field(default_factory=list)
    detectors: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.verdict != "FAILED"


@functools.cache
def links_of_kernel(kind: str) -> bool:
    """Whether this machine's kernel can make such a link; tried in a namespace of its own."""
    if not kind:
        return True
    what = "link d0 name v0 type vlan id 5" if kind == "vlan" else f"type {kind}"
    script = f"ip link add d0 type bridge && ip link add {what}"
    return subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True, check=False).returncode == 0


def _detectors(job: Job) -> list[tuple[Row, places.Place, Detector]]:
    return [(row, place, detector) for row, place in zip(job.rows, job.places)
            for detector in (row.detect if job.phase == "fault" else row.twin_detect)]


def _timed(deed: Callable[[Job], T], job: Job) -> tuple[T, float]:
    start = time.monotonic()
    return deed(job), time.monotonic() - start


def shout(text: str) -> None:
    print(text, flush=True)


class Evaluator:
    def __init__(self, instance: Instance, inventory: Path, fleet: str, folder: Path,
                 say: Callable[[str], None] = shout) -> None:
        self.hosts = places.read(instance, fleet)
        self.ansible = Ansible(inventory, folder)
        self.machine = steps.Machine(instance, self.ansible.apply)
        self.clean: dict[str, picture.Picture] = {}
        self.say = say

    # -- one job --------------------------------------------------------------------------------

    def _variables(self, job: Job) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for row, place in zip(job.rows, job.places):
            given = place.fill((row.fault if job.phase == "fault" else row.twin).vars)
            found.update({**(NO_INTENT if given else {}), **given})
            if place.peer is not None:
                found["faults_targets"] = [{
                    "interface": place.rail.netdev, "address": place.peer.rails[row.rail].ip, "size_bytes": MTU_BYTES,
                    "peer": place.peer.name, "rail": row.rail}]
        return found

    def _set(self, job: Job) -> str:
        """Empty, or why it could not be set."""
        try:
            for row, place in zip(job.rows, job.places):
                if not links_of_kernel(row.requires):
                    self.machine.show_links(place.host.name, True)
                steps.do(self.machine, place, (row.fault if job.phase == "fault" else row.twin).set)
        except (steps.StepError, FaultError, LabError, door.DoorError, subprocess.TimeoutExpired) as error:
            return f"cannot be set: {error}"
        return ""

    def _undo(self, job: Job) -> list[str]:
        """What is left of it; every undo is tried, then the hosts are compared with their clean picture."""
        wrong = []
        for row, place in reversed(list(zip(job.rows, job.places))):
            try:
                steps.do(self.machine, place, (row.fault if job.phase == "fault" else row.twin).undo)
                if not links_of_kernel(row.requires):
                    self.machine.show_links(place.host.name, False)
            except (steps.StepError, FaultError, LabError, door.DoorError, subprocess.TimeoutExpired) as error:
                wrong.append(f"cannot be undone: {error}")
        deadline = time.monotonic() + CLEAN_SECONDS
        while True:
            for place in job.places:
                self._forget_alarms(place)
            left = [f"left on {host}: {line}" for host in sorted(job.hosts)
                    for line in picture.difference(self.clean[host], self.machine.picture(host))]
            if not left or time.monotonic() > deadline:
                return wrong + left[:12]
            time.sleep(0.5)

    def _forget_alarms(self, place: places.Place) -> None:
        """A port that came while the fault was set: the boot tool said so, and its unit stays failed until the next one
        comes. The picture has what is really left."""
        if any("aidc-fabric@" in line for line in picture.difference(
                self.clean[place.host.name], self.machine.picture(place.host.name))):
            steps.do(self.machine, place, ({"host": "systemctl reset-failed 'aidc-fabric@*'"},))

    def _judge(self, job: Job, findings: Sequence[Finding]) -> list[str]:
        asked = _detectors(job)
        if job.phase == "twin":
            return [text for place in job.places
                    for text in judge.twin(place, [detector.run for _row, _place, detector in asked], findings)]
        wrong = [text for row, place, detector in asked for text in judge.fault(detector, place, row.names, findings)]
        if all(row.names == "rail" for row in job.rows):
            wrong += judge.blames(job.places, findings, self.hosts)
        return wrong

    # -- rounds ---------------------------------------------------------------------------------

    def look(self) -> None:
        """Take the clean hosts' pictures; every detector that there is must be silent on them."""
        with ThreadPoolExecutor() as pool:
            self.clean = dict(zip(self.hosts, pool.map(self.machine.picture, self.hosts)))

    def silent(self, runs: Iterable[str]) -> list[str]:
        """What detectors say of the clean lab: nothing."""
        asked = Round()
        for host in self.hosts.values():
            peer = next((other for other in self.hosts.values() if other is not host and other.leaf == host.leaf), None)
            asked.variables[host.name] = {"faults_targets": [] if peer is None else [{
                "interface": host.rails[0].netdev, "address": peer.rails[0].ip, "size_bytes": MTU_BYTES,
                "peer": peer.name, "rail": 0}]}
            for run in runs:
                asked.ask(host.name, run)
        return [f"{finding.host}: {finding.run}: {finding.text[:400]}" for finding in self.ansible.detect(asked)
                if not finding.note]

    def _detect(self, asked: Round) -> tuple[list[Finding], list[str]]:
        """Findings, or why there can be none: what is set must be undone all the same."""
        try:
            return (self.ansible.detect(asked) if asked.runs else []), []
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            return [], [f"cannot be detected: {error}"]

    def round(self, together: Sequence[Job]) -> list[Result]:
        """Seconds of a row are those of its own steps, and of the detectors, which all rows of the round share."""
        with ThreadPoolExecutor() as pool:
            unset, setting = zip(*pool.map(functools.partial(_timed, self._set), together))
            asked, start = Round(), time.monotonic()
            for job, reason in zip(together, unset):
                for _row, place, detector in _detectors(job) if not reason else ():
                    asked.ask(place.host.name, detector.run)
                if not reason:
                    asked.variables[job.places[0].host.name] = self._variables(job)
            findings, broken = self._detect(asked)
            detecting = time.monotonic() - start
            left, undoing = zip(*pool.map(functools.partial(_timed, self._undo), together))
        results = []
        for job, reason, remains, one, other in zip(together, unset, left, setting, undoing):
            why = ([reason] if reason else broken or self._judge(job, findings)) + remains
            good: Verdict = "detected" if job.phase == "fault" else "no finding"
            runs = list(dict.fromkeys(detector.run for _row, _place, detector in _detectors(job)))
            runs += [f"({row.requires}: a stand-in of ip)" for row in job.rows if not links_of_kernel(row.requires)]
            results.append(Result(job.name, job.phase, job.places[0].host.name, "FAILED" if why else good,
                                  one + detecting + other, why, runs))
        return results

    def run(self, rows: Mapping[str, Row], pairs: Mapping[str, Pair]) -> list[Result]:
        results = []
        self.look()
        for together in rounds(jobs(rows.values(), pairs.values(), self.hosts)):
            for result in self.round(together):
                results.append(result)
                self.say(line(result))
        return results


def line(result: Result) -> str:
    text = (f"{result.verdict:<10} {result.seconds:5.1f} s  {result.name:<28} {result.phase:<5} {result.host:<6} "
            f"{', '.join(result.detectors) or '-'}")
    return "\n".join([text, *(f"    {reason}" for reason in result.why)])
