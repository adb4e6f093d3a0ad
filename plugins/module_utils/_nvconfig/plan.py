# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From wanted parameters and what the firmware shows: what is wrong, what to write, what is then pending. Pure."""
from __future__ import annotations

import json
import typing as t

from .._host.errors import Problem
from .._mlx5.model import PCI_ADDRESS
from .model import GATED_BY, MEMORY_FILE, Node, Request, Row, State, Step, Want, Wanted
from .reset import Means, means

_YAML_HINT = 'YAML makes booleans of ON, OFF, YES and NO: quote the name, such as "OFF"'


def _gate_wanted(want: Want, name: str, node: Node) -> bool:
    """Whether the firmware hides a parameter only until the value that this call wants of another is loaded."""
    gate = GATED_BY.get(name)
    wanted = want.parameters.get(gate) if gate else None
    row = node.row(want.pci, gate) if gate else None
    return wanted is not None and row is not None and wanted.number == 1 and not wanted.fits(row.current)


def _state(want: Want, name: str, wanted: Wanted, node: Node) -> State:
    row = node.row(want.pci, name)
    if row is None:
        return "waiting" if _gate_wanted(want, name, node) else "unknown"
    if not wanted.fits(row.next):
        return "differs"
    # Firmware that cannot show the current value: what it runs with is not known, so nothing is said to be pending.
    return "pending" if row.current is not None and not wanted.fits(row.current) else "set"


def _check_wants(request: Request) -> list[Problem]:
    found, seen = [], set()
    for want in request.devices:
        if not PCI_ADDRESS.fullmatch(want.pci):
            found.append(Problem("devices", repr(want.pci), "a PCI address such as 0000:03:00.0"))
        elif want.pci in seen:
            found.append(Problem(want.pci, "listed twice", "each PCI address once"))
        seen.add(want.pci)
        found += want.problems
    return found + _check_cards(request)


def _check_cards(request: Request) -> list[Problem]:
    """Parameters of a port (NAME_P1) are the card's, whichever of its functions is asked."""
    found = []
    cards: dict[tuple[str, str], tuple[str, Wanted]] = {}
    for want in request.devices:
        for name, wanted in want.parameters.items():
            if not name.endswith(("_P1", "_P2")):
                continue
            pci, other = cards.setdefault((want.pci.rpartition(".")[0], name), (want.pci, wanted))
            if other.text.lower() != wanted.text.lower():
                found.append(Problem(f"{want.pci} {name}", wanted.text, f"{other.text}, as for {pci} of the same card",
                                     "the functions of a card share the parameters of its ports"))
    return found


def check_request(request: Request) -> list[Problem]:
    """What is wrong with the call itself, before any tool runs."""
    return _check_wants(request)


def _check_unknown(want: Want, name: str, node: Node) -> Problem:
    gate = GATED_BY.get(name)
    hint = "it depends on firmware and card; take it out, or use unknown_parameters: skip"
    if gate:
        hint = f"it is hidden while {gate} is off: want {gate}: true too, reset the firmware, run again"
    elif name.startswith("LINK_TYPE_P"):
        hint = "Ethernet-only cards have no link type, and a card with one port no _P2; take it out for this device"
    return Problem(f"{want.pci} {name}", f"a parameter that {node.tool} or the firmware does not know",
                   "a known one", hint)


def _check_row(pci: str, wanted: Wanted, row: Row) -> Problem | None:
    where, shown = f"{pci} {row.name}", row.next.text
    values = ", ".join(dict.fromkeys(value.text for value in row.values))
    if row.next.is_array:
        return Problem(where, f"one value for {shown}", "an index or a range of them",
                       f"write {row.name}{shown[5:]} for all, or {row.name}[0]")
    boolean = wanted.text.lower() in ("true", "false")
    if boolean and not row.is_boolean:
        return Problem(where, f"the boolean {wanted.text}", f"a value like {values}", _YAML_HINT)
    if not row.has_names and wanted.number is None and row.next.number is not None:
        return Problem(where, repr(wanted.text), f"a number like {values}")
    if row.is_boolean and wanted.number not in (0, 1):
        return Problem(where, repr(wanted.text), "true or false")
    if row.read_only and not wanted.fits(row.next):
        return Problem(where, wanted.text, f"{shown}; the parameter is read-only", "the vendor or the card sets it")
    return None


def check(request: Request, node: Node) -> list[Problem]:
    """What is wrong with the wanted values, given what the firmware shows."""
    found = []
    for want in request.devices:
        for name, wanted in want.parameters.items():
            row = node.row(want.pci, name)
            if row is not None:
                problem = _check_row(want.pci, wanted, row)
                found += [problem] if problem else []
            elif request.unknown_parameters == "error" and not _gate_wanted(want, name, node):
                found.append(_check_unknown(want, name, node))
    return found


def _differing(want: Want, node: Node) -> dict[str, Wanted]:
    return {name: wanted for name, wanted in want.parameters.items()
            if _state(want, name, wanted, node) == "differs"}


def _why(want: Want, names: t.Iterable[str], node: Node) -> str:
    rows = [(name, node.row(want.pci, name)) for name in names]
    return "next boot: " + ", ".join(f"{name} is {row.next.text}" for name, row in rows if row)


def memory_text(request: Request, node: Node) -> str:
    """What was written in which boot, so that a later run can tell that a reboot did not load it."""
    memory = {pci: dict(entries) for pci, entries in node.memory.items()}
    for want in request.devices:
        entries = memory.setdefault(want.pci, {})
        for name, wanted in want.parameters.items():
            state = _state(want, name, wanted, node)
            if state == "differs":
                entries[name] = {"wanted": wanted.text, "boot_id": node.boot_id}
            elif state == "set":
                entries.pop(name, None)
    return json.dumps({pci: entries for pci, entries in memory.items() if entries}, indent=1, sort_keys=True) + "\n"


def plan(request: Request, node: Node) -> list[Step]:
    """One `set` per device with all that differs: rules between parameters are checked together [mstflint
    mlxcfg_generic_commander.cpp, setCfg]. The memory last: a value that the firmware refuses leaves nothing behind."""
    steps = []
    for want in request.devices:
        differing = _differing(want, node)
        if differing:
            values = [f"{name}={wanted.argument()}" for name, wanted in differing.items()]
            steps.append(Step((node.tool, "-y", "-d", want.pci, "set", *values), _why(want, differing, node), want.pci))
    text = memory_text(request, node)
    if steps and node.boot_id and text != memory_text(Request(()), node):
        steps.append(Step(("write", MEMORY_FILE), "remember in which boot the values were written", None, text))
    return steps


def _shown(want: Want, name: str, wanted: Wanted, node: Node, after: bool) -> str | None:
    """Next-boot value, in the operator's words where it is the wanted one: a run in check mode cannot know others."""
    row = node.row(want.pci, name)
    if row is None:
        return None
    return wanted.text if after or wanted.fits(row.next) else row.next.text


def state(request: Request, node: Node, after: bool = False) -> list[dict[str, t.Any]]:
    """The devices in the shape of the option: next-boot values; ``after`` the plan ran."""
    return [{"pci": want.pci, "parameters": {
        name: _shown(want, name, wanted, node, after) for name, wanted in want.parameters.items()}}
        for want in request.devices]


def verify(request: Request, node: Node) -> list[Problem]:
    """What does not hold although every `set` reported success. Nothing is tried twice."""
    found = []
    for want in request.devices:
        for name, wanted in _differing(want, node).items():
            row = node.row(want.pci, name)
            found.append(Problem(f"next-boot value of {want.pci} {name}", row.next.text if row else "none", wanted.text,
                                 f"{node.tool} reported success; set once, read back, not tried again"))
    return found


def _rebooted(want: Want, pending: t.Iterable[str], node: Node) -> bool:
    """Whether one of the pending values was written in an earlier boot: the reboot since did not load it."""
    entries = node.memory.get(want.pci, {})
    return bool(node.boot_id) and any(
        name in entries and entries[name].get("wanted") == want.parameters[name].text
        and entries[name].get("boot_id") != node.boot_id for name in pending)


def pending(want: Want, node: Node, written: t.Container[tuple[str, str]] = ()) -> list[str]:
    """Names whose next-boot value is (or will be, once written) the wanted one and not loaded yet."""
    found = []
    for name, wanted in want.parameters.items():
        row = node.row(want.pci, name)
        if row is None:
            continue
        unloaded = not wanted.fits(row.current) if row.current is not None else (want.pci, name) in written
        if unloaded:
            found.append(name)
    return found


def written(request: Request, node: Node) -> set[tuple[str, str]]:
    """Device and parameter of everything that the plan for this node writes."""
    return {(want.pci, name) for want in request.devices for name in _differing(want, node)}


def _parameter(want: Want, name: str, wanted: Wanted, node: Node, unloaded: t.Container[str], predict: bool
               ) -> dict[str, t.Any]:
    row = node.row(want.pci, name)
    now: str = _state(want, name, wanted, node)
    if now in ("set", "pending") or (predict and now == "differs"):
        now = "pending" if name in unloaded else "set"
    return {"name": name, "wanted": wanted.text, "state": now,
            "default": row.default.text if row and row.default else None,
            "current": row.current.text if row and row.current else None,
            "next": row.next.text if row else None}


def _device(request: Request, want: Want, node: Node, done: t.Container[tuple[str, str]], predict: bool
            ) -> dict[str, t.Any]:
    reading = node.readings[want.pci]
    unloaded = pending(want, node, done)
    way = Means((), "") if not unloaded else means(
        node.tool, want.pci, request.bmc_powered, reading.reset_levels,
        rebooted=_rebooted(want, unloaded, node), told_power_cycle=want.pci in node.power_cycle)
    return {
        "pci": want.pci, "device_type": reading.device_type, "card": reading.card,
        "parameters": [_parameter(want, name, wanted, node, unloaded, predict)
                       for name, wanted in want.parameters.items()],
        "pending": unloaded, **way.as_dict(),
    }


def details(request: Request, node: Node, done: t.Container[tuple[str, str]], predict: bool) -> list[dict[str, t.Any]]:
    """Each device with every parameter; ``done`` is what this call writes, ``predict`` that it did not write it."""
    return [_device(request, want, node, done, predict) for want in request.devices]


def summary(devices: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Lines for the operator: what is pending and what to do."""
    found = []
    for device in devices:
        parts = [f"{entry['name']} runs with {entry['current'] or 'a value that the firmware does not show'}, "
                 f"wanted {entry['wanted']}" for entry in device["parameters"] if entry["name"] in device["pending"]]
        if parts:
            found.append(f"{device['pci']}: pending: {'; '.join(parts)}. {device['reason']}")
        for word, text in (("waiting", "can be set once the pending values are loaded; then run again"),
                           ("unknown", "not known to this firmware, skipped")):
            names = [entry["name"] for entry in device["parameters"] if entry["state"] == word]
            if names:
                found.append(f"{device['pci']}: {', '.join(names)}: {text}")
    return found
