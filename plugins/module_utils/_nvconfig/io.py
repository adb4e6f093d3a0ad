# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Ask the tools for firmware parameters, and carry out a plan."""
from __future__ import annotations

import dataclasses
import json
import typing as t

from .._host.errors import AidcError, Problem
from .._host.files import read_text, write_atomic
from .._host.machine import Machine
from .._host.runner import Result
from .._host.sysfs import Sysfs
from .._mlx5.model import VENDOR_ID
from . import parse
from .model import MEMORY_FILE, Node, Reading, Request, Step, Want
from .reset import tool_of

_TOOLS = {"auto": ("mlxconfig", "mstconfig"), "mlxconfig": ("mlxconfig",), "mstconfig": ("mstconfig",)}
_INSTALL = "install the package mstflint (mstconfig) of the distribution, or MFT (mlxconfig) with DOCA-OFED"
_HINTS = {
    "missing": _INSTALL,
    "timeout": "the firmware does not answer, or another tool holds its semaphore; look at dmesg",
    "failed": "run it by hand; look at dmesg",
}
_WANTED = "the answer of a query with a 'Configurations:' table"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
FILE_MODE = 0o644


def check_functions(machine: Machine, request: Request) -> list[Problem]:
    """Whether the addresses are physical mlx5 functions."""
    sysfs, found = Sysfs(machine.path("/sys")), []
    for want in request.devices:
        base = f"bus/pci/devices/{want.pci}"
        vendor = sysfs.read(f"{base}/vendor").value
        if vendor != VENDOR_ID:
            got = f"vendor {vendor}" if vendor else "no such PCI function"
            found.append(Problem(want.pci, got, "an mlx5 function"))
        elif "physfn" in sysfs.names(base):
            found.append(Problem(want.pci, "a virtual function", "the physical function",
                                 "firmware parameters belong to the card"))
    return found


def _failure(result: Result) -> str:
    """What went wrong; these tools print errors to the standard output, below their headings."""
    said = "; ".join(parse.errors(result.stdout))
    return f"exit status {result.rc}: {said}"[:300] if result.state == "failed" and result.rc and said else result.why()


def _problem(tool: str, pci: str, result: Result, wanted: str) -> Problem:
    return Problem(f"{tool} -d {pci}", _failure(result), wanted, _HINTS.get(result.state, _HINTS["failed"]))


def read_device(machine: Machine, tool: str, want: Want, skip: t.Container[str] = ()) -> Reading | Problem | None:
    """One query for all names; None if the tool is not there.

    A query that names an unknown parameter fails as a whole, so each of those costs one more query.
    """
    names = [name for name in want.parameters if name not in skip]
    unknown: list[str] = []
    while names:
        result = machine.tool(tool, "-d", want.pci, "-e", "q", *names)
        if result.state == "missing":
            return None
        if result.state == "ok":
            break
        lost = parse.unknown(result.stdout, names) if result.state == "failed" else None
        if lost is None:
            return _problem(tool, want.pci, result, _WANTED)
        names.remove(lost)
        unknown.append(lost)
    if not names:
        return Reading(want.pci, unknown=tuple(unknown))
    try:
        reading = parse.query(result.stdout, want.pci)
    except ValueError as error:
        return Problem(f"{tool} -d {want.pci}", result.unreadable(error), _WANTED, _HINTS["failed"])
    silent = [name for name in names if name not in reading.rows]
    if silent:
        return Problem(f"{tool} -d {want.pci}", f"no row for {', '.join(silent)}",
                       "a row for every name that was asked", _HINTS["failed"])
    return dataclasses.replace(reading, unknown=tuple(unknown))


def read_memory(machine: Machine) -> dict[str, dict[str, dict[str, str]]]:
    """What earlier runs wrote; a file that is broken tells nothing."""
    try:
        data = json.loads(read_text(machine.path(MEMORY_FILE)) or "{}")
        return {pci: {name: {"wanted": str(entry["wanted"]), "boot_id": str(entry["boot_id"])}
                      for name, entry in entries.items()} for pci, entries in data.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _read_all(machine: Machine, tool: str, request: Request, skip: t.Mapping[str, t.Container[str]]
              ) -> dict[str, Reading] | None:
    """Of every device; None if the tool is not there. Raises AidcError with all that is wrong."""
    readings, problems = {}, []
    for want in request.devices:
        reading = read_device(machine, tool, want, skip.get(want.pci, ()))
        if reading is None:
            return None
        if isinstance(reading, Problem):
            problems.append(reading)
        else:
            readings[want.pci] = reading
    if problems:
        raise AidcError(problems)
    return readings


def gather(machine: Machine, request: Request) -> Node:
    """One query per device, with the first of the tools that is there. Raises AidcError."""
    tools = _TOOLS[request.tool]
    for tool in tools:
        readings = _read_all(machine, tool, request, {})
        if readings is not None:
            return Node(tool, readings, (read_text(machine.path(_BOOT_ID)) or "").strip(), read_memory(machine))
    raise AidcError([Problem(" and ".join(tools), "the program is not installed", "one of them", _INSTALL)])


def read_again(machine: Machine, request: Request, before: Node) -> Node:
    """As ``gather`` after the writes, with the tool and without the names that were not known before."""
    skip = {pci: reading.unknown for pci, reading in before.readings.items()}
    readings = _read_all(machine, before.tool, request, skip)
    if readings is None:
        raise AidcError([Problem(before.tool, "the program is not installed any more", "the program", _INSTALL)])
    kept = {pci: dataclasses.replace(reading, unknown=before.readings[pci].unknown,
                                     reset_levels=before.readings[pci].reset_levels)
            for pci, reading in readings.items()}
    return dataclasses.replace(before, readings=kept)


def _levels(machine: Machine, tool: str, pci: str) -> frozenset[int] | None:
    """None where the tool is missing or says something else: then the way is a reboot or power cycle."""
    result = machine.tool(tool_of(tool), "-d", pci, "query")
    if result.state != "ok":
        return None
    try:
        return parse.reset_levels(result.stdout)
    except ValueError:
        return None


def ask_resets(machine: Machine, node: Node, devices: t.Iterable[str]) -> Node:
    """Which firmware resets the cards with something pending support: one question per kind of card."""
    readings, known = dict(node.readings), {}
    for pci in devices:
        kind = (readings[pci].device_type, readings[pci].card)
        if kind not in known:
            known[kind] = _levels(machine, node.tool, pci)
        readings[pci] = dataclasses.replace(readings[pci], reset_levels=known[kind])
    return dataclasses.replace(node, readings=readings)


def _write(machine: Machine, step: Step) -> Problem | None:
    try:
        write_atomic(machine.path(step.command[1]), step.text, FILE_MODE)
        return None
    except OSError as error:
        return Problem(step.command[1], error.strerror or str(error), "a written file", "is the file system writable?")


def _left_something(machine: Machine, want: Want, node: Node) -> bool:
    """Whether a `set` that failed changed a value after all; when it cannot be read, it may have."""
    reading = read_device(machine, node.tool, want, node.readings[want.pci].unknown)
    return not isinstance(reading, Reading) or any(
        row.next != reading.rows[name].next for name, row in node.readings[want.pci].rows.items())


def apply(machine: Machine, request: Request, node: Node, steps: t.Sequence[Step]) -> frozenset[str]:
    """Carry out the plan; the devices whose answer asks for a power cycle. An error names what was done before it."""
    wants = {want.pci: want for want in request.devices}
    done: list[tuple[str, ...]] = []
    power_cycle = set()
    for step in steps:
        if step.pci is None:
            problem = _write(machine, step)
        else:
            result = machine.tool(*step.command)
            problem = None
            if result.state != "ok":
                problem = Problem(" ".join(step.command), _failure(result), "success", _HINTS[result.state])
                if _left_something(machine, wants[step.pci], node):
                    done.append(step.command)
            elif parse.wants_power_cycle(result.stdout):
                power_cycle.add(step.pci)
        if problem is not None:
            raise AidcError([problem], done)
        done.append(step.command)
    return frozenset(power_cycle)
