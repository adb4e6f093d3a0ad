# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root in a host against the machine: every attempt fails or stays inside, and the machine reads as before."""
from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import lifecycle
from tests.integration import machine
from tests.integration.attempts import Attempt, attempts
from tests.integration.conftest import Lab, run_lab
from tests.lab_plugin import Labs

NAME = "esc"
FLEET = Path(__file__).parent / "fleets" / "pair.yml"
SWAPPINESS = Path("/proc/sys/vm/swappiness")
CLOCK_TOLERANCE_NS = 200_000
# Runs the attempts in the host, one after the other; a login of their own would take a second each.
RUNNER = """
import json, subprocess, sys
done = []
for argv in json.load(sys.stdin):
    try:
        run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
        done.append([run.returncode, run.stdout + run.stderr])
    except subprocess.TimeoutExpired:
        done.append([-1, "no end after 10 s"])
json.dump(done, sys.stdout)
"""
# The same from outside (`lab exec`, which joins the host) and from a child of the host's own PID 1.
ROUTES = {"exec": (), "systemd": ("systemd-run", "--quiet", "--pipe", "--wait")}


@pytest.fixture(scope="module")
def pair(labs: Labs) -> Iterator[Lab]:
    with labs.during(NAME, FLEET) as lab:
        yield lab


@pytest.fixture
def canary() -> Iterator[int]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process.pid
        assert process.poll() is None, "a process of the machine was ended from a host"
        process.kill()


@pytest.fixture
def swappiness() -> Iterator[str]:
    """The machine's value, put back whatever happens."""
    before = SWAPPINESS.read_text(encoding="ascii")
    yield "61\n" if before != "61\n" else "60\n"
    SWAPPINESS.write_text(before, encoding="ascii")


def in_host(lab: Lab, *argv: str, text: str = "", timeout: float = 60) -> str:
    command = lifecycle.inside(lab.instance, "one", list(argv))
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=timeout)
    assert done.returncode == 0, f"{argv[:4]}: {done.stdout}{done.stderr}"
    return done.stdout


def wrong(tried: list[Attempt], results: list[tuple[int, str]]) -> list[str]:
    """The attempts that did not come out as they must."""
    found = []
    for attempt, (code, output) in zip(tried, results):
        good = code == 0 if attempt.says is None else code != 0 and re.search(attempt.says, output)
        if not good:
            found.append(f"{attempt.would}: {' '.join(attempt.argv)}: exit status {code}, {output.strip()!r}, "
                         f"wanted {attempt.says or 'success inside'}")
    return found


def root_disk() -> tuple[int, int]:
    number = os.stat("/").st_dev
    return os.major(number), os.minor(number)


@pytest.mark.parametrize("route", ROUTES)
def test_attempts_of_root_in_a_host(pair: Lab, canary: int, route: str) -> None:
    tried = attempts(root_disk(), canary)
    before, clock = machine.reading(), machine.clock_offset_ns()
    argv = [*ROUTES[route], "python3", "-c", RUNNER]
    results = json.loads(in_host(pair, *argv, text=json.dumps([attempt.argv for attempt in tried])))
    assert machine.difference(before, machine.reading()) == {}
    assert abs(machine.clock_offset_ns() - clock) < CLOCK_TOLERANCE_NS
    assert len(results) == len(tried)
    assert wrong(tried, results) == []


def test_the_reading_sees_a_change(swappiness: str) -> None:
    before = machine.reading()
    assert len(before) > 500, "the reading is nearly empty"
    SWAPPINESS.write_text(swappiness, encoding="ascii")
    assert set(machine.difference(before, machine.reading())) == {str(SWAPPINESS)}


def test_without_the_barriers_the_same_attempt_gets_out(pair: Lab, swappiness: str) -> None:
    """nsenter alone has neither the filter nor the dropped capabilities: the attempt is a real one."""
    argv = ["nsenter", "-t", str(lifecycle.init_pid(pair.instance, "one")), "-m", "-p", "unshare", "-m", "sh", "-c",
            f"mount -t proc p /mnt && echo {swappiness.strip()} > /mnt/sys/vm/swappiness"]
    before = machine.reading()
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    assert set(machine.difference(before, machine.reading())) == {str(SWAPPINESS)}


def test_no_file_system_of_the_machine_is_mounted_in_a_host(pair: Lab) -> None:
    """`mount -o remount,ro` of one would act on the machine's. cgroup2 is one for all; a host sees its own part."""
    inside = machine.file_systems(in_host(pair, "cat", "/proc/1/mountinfo"))
    outside = set().union(*machine.file_systems(Path("/proc/self/mountinfo").read_text(encoding="utf-8")).values())
    assert {kind for kind, devices in inside.items() if devices & outside} <= {"cgroup2"}
    assert {"overlay", "proc", "tmpfs", "sysfs"} <= set(inside)


def test_a_reboot_stays_inside(pair: Lab) -> None:
    before, uptime = machine.reading(), time.monotonic()
    run_lab("reboot", "one", name=NAME)
    assert machine.difference(before, machine.reading()) == {}
    assert time.monotonic() > uptime
