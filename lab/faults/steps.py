# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mechanisms that rows of the table are made of. Each can be set and cleared again and again."""
from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import cgroup, fabric, lifecycle, power
from lab.faults import files
from lab.faults.scope import Place
from lab.faults.table import FaultError, Row, expand
from lab.hardware import door
from lab.instance import Instance
from lab.inventory import ROOT

# As long as the kernel may answer from its cache of the FUSE tree (hardware/fs.py).
CACHE_SECONDS = 0.25
# Not a host's name (those have no dot).
WATCHERS = "fault.d"


@dataclass(frozen=True)
class Step:
    instance: Instance
    place: Place
    keys: Mapping[str, Any]
    survives_reboot: bool

    @property
    def host(self) -> str:
        return self.place.host

    @property
    def pid(self) -> int:
        pid = power.running(self.instance, self.host)
        if pid is None:
            raise FaultError(f"host {self.host} is off")
        return pid

    def keep(self, subject: str) -> Path:
        """A folder outside of the host for what this step has to remember about ``subject``."""
        name = hashlib.sha256(subject.encode()).hexdigest()[:16]
        return self.instance.host_dir(self.host) / "faults" / name


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise FaultError(f"{shlex.join(argv)}: {(done.stderr or done.stdout).strip()}")


def _fabric(step: Step, which: str) -> None:
    """A command in the fabric's namespace. A rail whose cable is not there now has nothing to change."""
    command, port = step.keys.get(which), step.place.values.get("port")
    if command and (port is None or port in fabric.plugged(step.instance)):
        _run(["ip", "netns", "exec", step.instance.fabric, *shlex.split(command)])


def _host(step: Step, which: str) -> None:
    if step.keys.get(which):
        _run(lifecycle.inside(step.instance, step.host, shlex.split(step.keys[which])))


def _hardware(step: Step, which: str) -> None:
    door.ask(step.instance.host_dir(step.host) / "door", step.keys[which])
    time.sleep(CACHE_SECONDS)


def _tool(step: Step, which: str) -> None:
    name, content = step.keys["name"], step.keys["content"]
    keep = step.keep(f"tool {name}")
    if step.survives_reboot:
        if which == "set":
            files.replace_on_disk(step.pid, keep, name, content)
        else:
            files.restore_on_disk(step.pid, keep, content)
    elif which == "set":
        files.mount_over(step.pid, keep, name, content)
    else:
        files.unmount(step.pid, keep)


def _full(step: Step, which: str) -> None:
    directory = step.keys["directory"]
    keep = step.keep(f"full {directory}")
    if which == "set":
        files.fill(step.pid, keep, directory)
    else:
        files.free(step.pid, keep)


def _power(step: Step, which: str) -> None:
    (power.on if step.keys[which] == "on" else power.off)(step.instance, step.host)


def _watch(step: Step, which: str) -> None:
    """A process outside of the host that waits for the moment (watch.py); cleared, the host is switched on."""
    own = step.instance.cgroup / WATCHERS / step.host
    if which == "clear":
        cgroup.kill(own)
        cgroup.remove(own)
        power.on(step.instance, step.host)
        return
    if cgroup.populated(own):
        return
    own.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "lab.faults.watch", step.instance.name, step.host, str(step.keys["process"]),
            str(step.keys["logins"]), str(step.keys["delay"])]
    with open(step.instance.host_dir(step.host) / "console.log", "ab") as log:
        watcher = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                   start_new_session=True, preexec_fn=lambda: cgroup.enter(own))
    assert watcher.stdout is not None
    if watcher.stdout.readline() != b"armed\n":
        raise FaultError(f"the watcher of {step.host} did not start; see {log.name}")


@dataclass(frozen=True)
class Mechanism:
    """``at_boot``: when a new boot needs it again: with the "links", when the "host" has its files, or never ("")."""

    do: Callable[[Step, str], None]
    needs_host: bool
    at_boot: str


MECHANISMS = {
    "fabric": Mechanism(_fabric, False, "links"),
    "host": Mechanism(_host, True, "host"),
    "hardware": Mechanism(_hardware, True, "links"),
    "tool": Mechanism(_tool, True, "host"),
    "full": Mechanism(_full, True, "host"),
    "power": Mechanism(_power, False, ""),
    "watch": Mechanism(_watch, False, ""),
}


def needs_host(row: Row) -> bool:
    return any(MECHANISMS[mechanism].needs_host for mechanism, _keys in row.steps)


def do(instance: Instance, row: Row, spots: list[Place], which: str, wanted: Callable[[str], bool]) -> None:
    """Set ("set") or undo ("clear") the steps whose mechanism is ``wanted``; undone in the other order."""
    pairs = [(spot, mechanism, keys) for spot in spots for mechanism, keys in row.steps if wanted(mechanism)]
    for spot, mechanism, keys in pairs if which == "set" else reversed(pairs):
        step = Step(instance, spot, expand(keys, spot.values, mechanism), row.survives_reboot)
        try:
            MECHANISMS[mechanism].do(step, which)
        except (OSError, door.DoorError) as error:
            raise FaultError(f"{row.name} on {spot.host}, {mechanism}: {error}") from error
