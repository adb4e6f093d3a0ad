# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Make the checks of one run, and keep what is remembered of them."""
from __future__ import annotations

import dataclasses
import re
import typing as t
from datetime import datetime, timezone

from .._boot import plan as boot_plan
from .._boot.model import Drift
from .._boot.model import Reason as BootReason
from .._host.errors import AidcError
from .._host.files import read_text, write_atomic
from .._host.lock import host_lock
from .._host.machine import Machine
from .._intent import io as intent_io
from .._intent.model import PATH, TIME_FORMAT, Intent
from . import files
from .model import DRIFT_CHECKS, FILE_CHECKS, STATE, Memory, Options, Result, memory_text

# Check -> sections of the intent that are about it. What the boot tool calls "ports" is the check of that name here.
_SECTIONS = {"addresses": ("rail_network",), "mtu": ("mlx5_port", "rail_network"), "qos": ("roce_qos",),
             "gid": ("roce_gid",)}
# Words of the boot tool about how it looked.
_HINT = re.compile(r" \(read back[^)]*\)")
Told = t.Callable[[t.Sequence[str]], None]
Have = t.Callable[[Result], None]


def _intent(machine: Machine) -> tuple[Intent | None, str]:
    try:
        found = intent_io.read(machine)
    except AidcError as error:
        return None, error.problems[0].text()
    return found, "" if found else f"there is no {PATH}"


def _file_check(machine: Machine, options: Options, name: str, intent: tuple[Intent | None, str]) -> Result:
    if name == "ports":
        known, why = intent
        return files.ports(machine, boot_plan.wanted_ports(known)) if known else Result("ports", None, why)
    checks: dict[str, t.Callable[[Machine, Options], Result]] = {
        "gpus": files.gpus, "memlock": files.memlock, "disk": files.disk}
    return checks[name](machine, options)


def _drift(machine: Machine, intent: Intent) -> list[Drift]:
    # Python compiles what a zip holds at each start, and most of it is behind this import: a prolog does without.
    from .._boot import io as boot_io
    from .._rail.io import Once

    # The sections ask the same tools; one run of the program is one moment.
    machine = dataclasses.replace(machine, run=Once(machine.run))
    # Somebody who changes the host right now holds the lock: what differs meanwhile is no drift.
    with host_lock(machine, "aidc-health", 0.0):
        return list(boot_io.one_round(machine, intent, BootReason("hand"), True).drift)


def _check_of(drift: Drift) -> str:
    """The role of rail_network sets the MTU of the rails, too."""
    if drift.section == "mlx5_port" or (drift.section == "rail_network" and "MTU" in drift.what):
        return "mtu"
    return next((check for check, sections in _SECTIONS.items() if drift.section in sections), "")


def _drift_results(machine: Machine, names: t.Sequence[str], intent: tuple[Intent | None, str]) -> list[Result]:
    known, why = intent
    if known is None:
        return [Result(name, None, why) for name in names]
    try:
        drift = _drift(machine, known)
    except AidcError as error:
        return [Result(name, None, error.problems[0].text()) for name in names]
    found = []
    for name in names:
        texts = [_HINT.sub("", one.what) for one in drift if _check_of(one) == name]
        if any(section in known.sections for section in _SECTIONS[name]):
            found.append(Result(name, not texts, ", ".join(texts)))
        else:
            found.append(Result(name, None, f"the intent has no section {_SECTIONS[name][0]}", applies=False))
    return found


def make(machine: Machine, options: Options, names: t.Sequence[str], told: Told, have: Have) -> None:
    """``told`` gets the checks that begin, ``have`` each result, so that whoever waits knows where it hangs."""
    told(("ports",))
    intent = _intent(machine)
    for name in (name for name in FILE_CHECKS if name in names):
        told((name,))
        have(_file_check(machine, options, name, intent))
    drifts = [name for name in DRIFT_CHECKS if name in names]
    if drifts:
        told(drifts)
        for result in _drift_results(machine, drifts, intent):
            have(result)


def remembered(machine: Machine) -> str | None:
    try:
        return read_text(machine.path(STATE))
    except OSError:
        return None


def remember(machine: Machine, counts: Memory) -> str:
    """Why it could not be kept, or nothing. A full disk must not keep the verdict from slurmctld."""
    now = datetime.now(timezone.utc).strftime(TIME_FORMAT)
    try:
        write_atomic(machine.path(STATE), memory_text(counts, now), 0o644)
    except OSError as error:
        return f"{STATE}: {error.strerror}"
    return ""
