# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out the steps of a row: raw changes of a running lab, never by code of the collection but for ``play``."""
from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lab import driver, lifecycle, power
from lab.faults import manage, table
from lab.faults.steps import CACHE_SECONDS
from lab.hardware import door
from lab.hardware.state import Event
from lab.instance import Instance
from tests.faults import picture
from tests.faults.places import Place
from tests.faults.rows import Step

SECONDS = 15.0
# What the hardware model counts since its start.
COUNTERS = ("pfc_writes",)
SOURCE = Path(picture.__file__)
STANDIN_IP, IP = Path(__file__).with_name("standin_ip.py"), "/usr/local/sbin/ip"


class StepError(RuntimeError):
    """A step that could not be done; the message has it whole."""


# Runs roles on a host with variables of its own; true when all ended well.
PlayRoles = Callable[[str, "list[str]", "dict[str, Any]"], bool]


class Machine:
    """The lab as the steps see it."""

    def __init__(self, instance: Instance, play: PlayRoles) -> None:
        self.instance = instance
        self.play = play

    def run(self, host: str, *argv: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(lifecycle.inside(self.instance, host, list(argv)), input=text, capture_output=True,
                              text=True, check=False, timeout=60)

    def shell(self, host: str, text: str) -> str:
        done = self.run(host, "sh", "-ec", text)
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise StepError(f"{host}: {text}: exit status {done.returncode}: {said}")
        return done.stdout

    def picture(self, host: str) -> picture.Picture:
        done = self.run(host, "python3", "-", text=SOURCE.read_text(encoding="utf-8"))
        if done.returncode != 0:
            raise StepError(f"{host}: picture: {done.stderr.strip()[-1500:]}")
        found: picture.Picture = json.loads(done.stdout)
        for number, rail in enumerate(door.ask(self.instance.host_dir(host) / "door", {"do": "show"})):
            kept = {key: value for key, value in rail.items() if key not in COUNTERS}
            found[f"hardware rail {number}"] = json.dumps(kept, sort_keys=True)
        found["lab faults"] = "; ".join(manage.show(self.instance))
        return found

    def show_links(self, host: str, wanted: bool) -> None:
        """Put the stand-in for ip into the host, or take it away."""
        if not wanted:
            self.shell(host, f"rm -f {IP} /run/standin-ip.json")
            return
        done = self.run(host, "sh", "-ec", f"cat > {IP}; chmod 755 {IP}", text=STANDIN_IP.read_text(encoding="utf-8"))
        if done.returncode != 0:
            raise StepError(f"{host}: {IP}: {done.stderr.strip()}")

    def until(self, host: str, text: str, seconds: float = SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while self.run(host, "sh", "-c", text).returncode != 0:
            if time.monotonic() > deadline:
                raise StepError(f"{host}: not within {seconds:g} s: {text}")
            time.sleep(0.2)


def _host(machine: Machine, place: Place, text: Any) -> None:
    machine.shell(place.host.name, text)


def _peer(machine: Machine, place: Place, text: Any) -> None:
    assert place.peer is not None
    machine.shell(place.peer.name, text)


def _fabric(machine: Machine, _place: Place, text: Any) -> None:
    done = subprocess.run(["ip", "netns", "exec", machine.instance.fabric, "sh", "-ec", text], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise StepError(f"fabric: {text}: {done.stderr.strip()}")


def _door(machine: Machine, place: Place, request: Any) -> None:
    about = {"rail": place.rail.number, **request}
    try:
        door.ask(machine.instance.host_dir(place.host.name) / "door", about)
    except door.DoorError as error:
        raise StepError(str(error)) from error
    time.sleep(CACHE_SECONDS)


def _fault(machine: Machine, _place: Place, words: Any) -> None:
    name, target, *parameters = words
    manage.set_fault(machine.instance, table.load(), name, target, parameters)


def _clear(machine: Machine, _place: Place, words: Any) -> None:
    manage.clear(machine.instance, table.load(), words[0], words[1])


def _reboot(machine: Machine, place: Place, kind: Any) -> None:
    power.reboot(machine.instance, place.host.name, cold=kind == "cold")


def _driver(machine: Machine, place: Place, kind: Any) -> None:
    driver.reload(machine.instance, place.host.name, Event(kind))


def _until(machine: Machine, place: Place, text: Any) -> None:
    machine.until(place.host.name, text)


def _play(machine: Machine, place: Place, about: Any) -> None:
    """The one step that is the collection's own: a run that a fault strikes, or that puts right what an event cost."""
    good = machine.play(place.host.name, about["roles"], about.get("vars", {}))
    if good is about.get("fails", False):
        raise StepError(f"{place.host.name}: {', '.join(about['roles'])}: {'ended well' if good else 'failed'}")


DEEDS: dict[str, Callable[[Machine, Place, Any], None]] = {
    "host": _host, "peer": _peer, "fabric": _fabric, "door": _door, "fault": _fault, "clear": _clear,
    "reboot": _reboot, "driver": _driver, "until": _until, "play": _play,
}


def do(machine: Machine, place: Place, given: Iterable[Step]) -> None:
    for step in given:
        ((kind, value),) = step.items()
        DEEDS[kind](machine, place, place.fill(value))
