# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, remove, and kill in between: what a lab leaves on the machine is compared as full listings."""
from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import attendants
from lab.guard.process import NAME as GUARD
from lab.instance import Instance, LabError, cgroup_mount
from lab.state import state_dir
from tests.integration.conftest import ROOT, lab_command, run_lab

NAME = "kill"
FLEET = Path(__file__).parent / "fleets" / "small.yml"
PAIR = FLEET.with_name("pair.yml")
# What stands in the command lines of a lab's processes, or in their cgroups (whatever they run).
WORDS = ("-m lab", "/sbin/init ", f"aidc-lab-{NAME}", f"aidc-{NAME}", f"instances/{NAME}")
# Where `up` is killed: seconds after the line with this text (or after its start).
MOMENTS = (
    ("", 0.2), ("", 0.7), ("machine checked", 0.0), ("machine checked", 0.02), ("files of", 0.0), ("files of", 0.02),
    ("fabric", 0.0), ("fabric", 0.1), ("fabric", 0.5), ("answer on SSH", 0.0),
)


def others() -> tuple[str, ...]:
    """Marks of labs that the user runs beside these tests."""
    names = [path.name for path in (state_dir() / "instances").glob("*") if path.name != NAME]
    marks = ("aidc-lab-{}", "aidc-{}-", "/instances/{}", " --name {} ")
    return tuple(mark.format(name) for name in names for mark in marks)


def commands() -> set[str]:
    """Command lines of all processes; zombies and kernel threads have none."""
    found, beside = set(), others()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name == str(os.getpid()):
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            where = (entry / "cgroup").read_text(encoding="ascii")
        except OSError:
            continue
        if line and not any(mark in where or mark in line for mark in beside):
            found.add(f"{entry.name} {line} {' '.join(part for part in where.split() if '/aidc-lab-' in part)}")
    return found


def files(top: Path, without: tuple[str, ...] = ()) -> set[str]:
    return {str(Path(base) / name) for base, dirs, names in os.walk(top) for name in dirs + names
            if not str(Path(base) / name).startswith(without)}


def listing(inventory: Path) -> dict[str, set[str]]:
    """Everything on the machine that a lab could leave."""
    beside = others()
    found = _listing(inventory)
    beside += others()  # one that started meanwhile
    return {key: {item for item in items if not any(mark in item for mark in beside)} for key, items in found.items()}


def _listing(inventory: Path) -> dict[str, set[str]]:
    cache = (str(state_dir() / "cache" / "image-"), str(state_dir() / "cache" / "venv-"))
    return {
        "mounts": set(Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()),
        "namespaces": files(Path("/run/netns")),
        "links": set(os.listdir("/sys/class/net")),
        "cgroups": files(cgroup_mount(), (str(cgroup_mount() / "user.slice"), str(cgroup_mount() / "system.slice"))),
        # All that a lab writes there; other folders are somebody else's.
        "state": {*os.listdir(state_dir()), *files(state_dir() / "instances"), *files(state_dir() / "cache", cache)},
        "memory file system": files(Path("/dev/shm")),
        "temporary files": {name for name in os.listdir("/tmp") if "aidc-lab" in name},
        "inventory": files(inventory),
        "lab processes": {line for line in commands() if any(word in line for word in WORDS)},
    }


def difference(before: dict[str, set[str]], after: dict[str, set[str]]) -> dict[str, list[str]]:
    return {key: sorted(before[key] ^ after[key]) for key in before if before[key] != after[key]}


@pytest.fixture
def inventory(tmp_path: Path) -> Iterator[Path]:
    run_lab("down", name=NAME)
    directory = tmp_path / "inventory"
    directory.mkdir()
    yield directory
    run_lab("down", name=NAME)


def start(inventory: Path, fleet: Path = FLEET) -> list[str]:
    return lab_command("up", "--fleet", str(fleet), "--inventory", str(inventory), name=NAME)


def test_up_and_down_leave_the_machine_as_it_was(inventory: Path) -> None:
    (inventory / "group_vars").mkdir()
    before = listing(inventory)
    subprocess.run(start(inventory), cwd=ROOT, check=True, capture_output=True)
    during = listing(inventory)
    # The comparison below is worth something only if it sees what a lab makes.
    for key in ("namespaces", "cgroups", "state", "inventory", "lab processes"):
        assert before[key] != during[key], f"the listing of {key} does not see a running lab"
    run_lab("down", name=NAME)
    assert difference(before, listing(inventory)) == {}


def pids() -> list[str]:
    return [Instance(NAME).host_dir(name).joinpath("pid").read_text(encoding="ascii") for name in ("one", "two")]


def test_second_up_says_so_and_changes_nothing(inventory: Path) -> None:
    subprocess.run(start(inventory), cwd=ROOT, check=True, capture_output=True)
    before = pids()
    again = subprocess.run(start(inventory), cwd=ROOT, check=True, capture_output=True, text=True)
    assert "up already: 3 hosts" in again.stdout
    assert pids() == before


def test_a_second_command_waits_and_names_the_holder(inventory: Path) -> None:
    process = subprocess.Popen(start(inventory), cwd=ROOT, stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    second = subprocess.run(lab_command("down", name=NAME), cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.wait(timeout=1) == 0, "down did not wait for up"
    assert f"waiting for process {process.pid} (" in second.stdout
    assert not Instance(NAME).exists()


def test_a_lock_that_stays_is_an_error_with_the_holder(inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Instance(NAME), Instance(NAME)
    with one.lock("up"), pytest.raises(LabError, match=rf"lab down: process {os.getpid()} \("), two.lock("down", 0.2):
        pass


def kill_at(argv: list[str], marker: str, delay: float, group: bool) -> int:
    """Kill -9 a command some time after it printed a line with ``marker``; how many lines it got to print."""
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    count = 0
    while marker and (line := process.stdout.readline()):
        count += 1
        if marker in line:
            break
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):  # ended already
        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
    return count + len(process.communicate(timeout=30)[0].splitlines())


@pytest.mark.slow  # a minute; test_up_after_a_kill_works is in make test
def test_kill_at_many_moments_of_up_leaves_nothing_after_down(inventory: Path) -> None:
    (inventory / "group_vars").mkdir()
    before, reached = listing(inventory), set()
    for number, (marker, delay) in enumerate(MOMENTS):
        # Every other time the whole process group, the checks and tools that `up` runs included.
        reached.add(kill_at(start(inventory), marker, delay, group=number % 2 == 1))
        run_lab("down", name=NAME)
        assert difference(before, listing(inventory)) == {}, f"killed {delay} s after {marker or 'the start'}"
    assert len(reached) >= 4, f"the kills met only {len(reached)} steps; the moments say little"


def test_up_after_a_kill_works(inventory: Path) -> None:
    process = subprocess.Popen(start(inventory), cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(1.8)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run(start(inventory), cwd=ROOT, check=True, capture_output=True)
    status = subprocess.run(lab_command("status", name=NAME), cwd=ROOT, capture_output=True, text=True, check=True)
    assert status.stdout.count("running") == 3


def test_supervisor_killed_takes_its_host_along_and_up_repairs(inventory: Path) -> None:
    subprocess.run(start(inventory), cwd=ROOT, check=True, capture_output=True)
    outside = Instance(NAME).host_cgroup("one") / "outside" / "cgroup.procs"
    for pid in outside.read_text(encoding="ascii").split():
        if b"lab.supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGKILL)
    time.sleep(0.5)
    status = subprocess.run(lab_command("status", name=NAME), cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in status.stdout.splitlines() if line.startswith("one ")][0].split()[3] == "off"
    subprocess.run(start(inventory), cwd=ROOT, check=True, capture_output=True)
    status = subprocess.run(lab_command("status", name=NAME), cwd=ROOT, capture_output=True, text=True, check=True)
    assert status.stdout.count("running") == 3


SEED = int(os.environ.get("AIDC_KILL_SEED") or random.SystemRandom().randrange(10**6))
RANDOM_MOMENTS = 20
UP_MARKERS = ("", "machine checked", "files of", "fabric", "answer on SSH", "all services", "inventory written")
TARGETS = ((attendants.SUPERVISOR,), (GUARD,), (attendants.HARDWARE,),
           (attendants.SUPERVISOR, GUARD, attendants.HARDWARE))


@dataclass(frozen=True)
class Moment:
    """What is killed: `up` or `down` some time after a line of it, or processes beside host `one` of a running lab."""

    over: str
    marker: str = ""
    delay: float = 0.0
    group: bool = False
    targets: tuple[str, ...] = ()


def random_moments(seed: int) -> list[Moment]:
    """Each of the three at least five times, in an order that comes from ``seed`` alone."""
    chance = random.Random(seed)
    kinds = ["up"] * 8 + ["running"] * 7 + ["down"] * 5
    chance.shuffle(kinds)
    moments = []
    for kind in kinds:
        group = chance.random() < 0.5
        if kind == "up":
            moments.append(Moment(kind, chance.choice(UP_MARKERS), round(chance.uniform(0, 0.8), 3), group))
        elif kind == "down":
            moments.append(Moment(kind, "", round(chance.uniform(0, 0.5), 3), group))
        else:
            moments.append(Moment(kind, targets=chance.choice(TARGETS), delay=round(chance.uniform(0, 0.3), 3)))
    return moments


def kill_beside(targets: tuple[str, ...]) -> None:
    """Kill -9 the named processes outside host `one`."""
    killed = set()
    for pid, names in attendants.processes(Instance(NAME), "one").items():
        if names & set(targets):
            os.kill(pid, signal.SIGKILL)
            killed |= names
    assert killed >= set(targets), f"met {killed}, wanted {targets}"


def test_the_moments_come_from_the_seed_and_cover_all() -> None:
    assert random_moments(1) == random_moments(1) != random_moments(2)
    assert {moment.over for moment in random_moments(SEED)} == {"up", "running", "down"}
    assert len(random_moments(SEED)) == RANDOM_MOMENTS


# 113 and 135 s on a busy machine with two cores.
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kill_at_random_moments(inventory: Path) -> None:
    """Each followed by `up` or `down` in turn; what that left is compared in full. AIDC_KILL_SEED repeats a run."""
    print(f"AIDC_KILL_SEED={SEED}")
    (inventory / "group_vars").mkdir()
    before, up = listing(inventory), start(inventory, PAIR)
    for number, moment in enumerate(random_moments(SEED)):
        said = f"AIDC_KILL_SEED={SEED}, moment {number}: {moment}"
        if moment.over == "up":
            run_lab("down", name=NAME)
            kill_at(up, moment.marker, moment.delay, moment.group)
        else:
            # A running lab is there already after a moment that ended with `up`.
            subprocess.run(up, cwd=ROOT, check=True, capture_output=True)
            if moment.over == "down":
                kill_at(lab_command("down", name=NAME), "", moment.delay, moment.group)
            else:
                kill_beside(moment.targets)
                time.sleep(moment.delay)
        if number % 2 == 0:
            done = subprocess.run(up, cwd=ROOT, check=False, capture_output=True, text=True)
            assert done.returncode == 0, f"{said}: {done.stdout}{done.stderr}"
            argv = lab_command("status", name=NAME)
            table = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
            assert table.count("running") == 2, f"{said}: {table}"
            assert attendants.missing(Instance(NAME), "one", hardware=True) == set(), said
        else:
            run_lab("down", name=NAME)
            assert difference(before, listing(inventory)) == {}, said
