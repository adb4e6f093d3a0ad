# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Firmware parameters of NICs as the tools show them, and what a call wants of them."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem

MEMORY_FILE = "/var/lib/aidc/mlx5_nvconfig.json"
# The firmware shows them only while the parameter on the right is on; set that one, reset the firmware, ask again
# [mstflint mlxconfig/mlxconfig_host.db, dependency of the parameters].
GATED_BY = {"MAX_ACC_OUT_READ": "ADVANCED_PCI_SETTINGS", "PCI_WR_ORDERING": "ADVANCED_PCI_SETTINGS"}
NAME = re.compile(r"[A-Z][A-Z0-9_]*")
INDEXED = re.compile(r"([A-Z][A-Z0-9_]*)\[(\d+)(?:\.\.(\d+))?\]")
_NUMBER = re.compile(r"\d+|0[xX][0-9a-fA-F]+")
_NAMED = re.compile(r"(\S+)\((\d+|0[xX][0-9a-fA-F]+)\)")
_BOOLEANS = {"true": 1, "false": 0}
LARGEST = 0xFFFFFFFF
MOST_INDICES = 256

State = t.Literal["set", "pending", "differs", "waiting", "unknown"]


@dataclass(frozen=True)
class Value:
    """A value in the tools' text: `ETH(2)`, `True(1)`, `255`, `Array[0..7]` or `N/A`."""

    text: str

    @property
    def name(self) -> str | None:
        found = _NAMED.fullmatch(self.text)
        return found.group(1) if found else None

    @property
    def number(self) -> int | None:
        """The number in the last parentheses, or the bare number of a value that has no name for the tool."""
        found = _NAMED.fullmatch(self.text)
        text = found.group(2) if found else self.text
        return _int(text) if _NUMBER.fullmatch(text) else None

    @property
    def is_boolean(self) -> bool:
        return (self.name or "").lower() in _BOOLEANS

    @property
    def is_array(self) -> bool:
        return self.text.startswith("Array[")


def _int(text: str) -> int:
    # Not base 0, which refuses 007.
    return int(text, 16) if text[:2].lower() == "0x" else int(text)


@dataclass(frozen=True)
class Wanted:
    """A wanted value: name, number, or both as `ETH(2)`. ``boolean`` if YAML made a boolean of it."""

    text: str
    boolean: bool = False

    @property
    def number(self) -> int | None:
        text = self.text.lower()
        return _BOOLEANS[text] if text in _BOOLEANS else Value(self.text).number

    def argument(self) -> str:
        """What goes behind the equals sign of `set`: a name or a number, not both."""
        return str(Value(self.text).number) if Value(self.text).name else self.text

    def fits(self, value: Value | None) -> bool:
        """Whether the value is the wanted one. A name is compared with a name, in any case, a number with a number."""
        if value is None:
            return False
        if self.number is not None:
            return value.number == self.number
        return (value.name or value.text).lower() == self.text.lower()


@dataclass(frozen=True)
class Row:
    """A parameter as a query shows it. Firmware that cannot read default or current values gives None."""

    name: str
    next: Value
    default: Value | None = None
    current: Value | None = None
    read_only: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(value for value in (self.default, self.current, self.next) if value is not None)

    @property
    def is_boolean(self) -> bool:
        return any(value.is_boolean for value in self.values)

    @property
    def has_names(self) -> bool:
        return any(value.name for value in self.values)


@dataclass(frozen=True)
class Reading:
    """What one query of a device says. ``unknown`` are the names that the tool or the firmware does not know."""

    pci: str
    device_type: str | None = None
    card: str | None = None
    rows: t.Mapping[str, Row] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    # Levels of a firmware reset that the card supports; None if they were not asked or not told.
    reset_levels: frozenset[int] | None = None


@dataclass(frozen=True)
class Want:
    pci: str
    parameters: t.Mapping[str, Wanted]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Request:
    devices: tuple[Want, ...]
    unknown_parameters: str = "error"
    tool: str = "auto"
    # Whether the NIC keeps its power through a reboot of the operating system; None if nobody said.
    bmc_powered: bool | None = None


@dataclass(frozen=True)
class Node:
    """All that one read gives, before or after the writes."""

    tool: str
    readings: t.Mapping[str, Reading]
    boot_id: str = ""
    # PCI address -> name -> {"wanted", "boot_id"}: what was written in which boot.
    memory: t.Mapping[str, t.Mapping[str, t.Mapping[str, str]]] = field(default_factory=dict)
    # Devices whose `set` answered that the machine must be power cycled.
    power_cycle: frozenset[str] = frozenset()

    def row(self, pci: str, name: str) -> Row | None:
        reading = self.readings.get(pci)
        return reading.rows.get(name) if reading else None


@dataclass(frozen=True)
class Step:
    """One mutation: an argv list, or ("write", path) with ``text``. It disturbs nothing; the reset would."""

    command: tuple[str, ...]
    why: str
    pci: str | None = None
    text: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"command": list(self.command), "disruptive": "none", "why": self.why, "pci": self.pci}


def _wanted(value: t.Any) -> Wanted | None:
    if isinstance(value, bool):
        return Wanted(str(value), boolean=True)
    if isinstance(value, (int, str)) and str(value).strip():
        return Wanted(str(value).strip())
    return None


def _expand(name: str, value: t.Any) -> list[tuple[str, t.Any]] | str:
    """Single parameters of an entry: an array with a range becomes one per index. A text says what is wrong."""
    found = INDEXED.fullmatch(name)
    if found is None:
        return [(name, value)] if NAME.fullmatch(name) else "a parameter's name, or NAME[2] or NAME[0..3] of an array"
    first, last = int(found.group(2)), int(found.group(3) or found.group(2))
    if not first <= last < first + MOST_INDICES:
        return f"a range that goes up and has at most {MOST_INDICES} indices"
    values = value if isinstance(value, list) else [value] * (last - first + 1)
    if len(values) != last - first + 1:
        return f"one value, or a list of {last - first + 1}"
    return [(f"{found.group(1)}[{index}]", one) for index, one in zip(range(first, last + 1), values)]


def _read(pci: str, parameters: t.Mapping[str, t.Any]) -> tuple[dict[str, Wanted | None], list[Problem]]:
    """Single parameters with their values, None for null; what is wrong with names and values."""
    found: dict[str, Wanted | None] = {}
    problems = []
    for key, value in parameters.items():
        entries = _expand(str(key).strip().upper(), value)
        if isinstance(entries, str):
            problems.append(Problem(f"{pci} {key}", repr(value), entries))
            continue
        for name, given in entries:
            wanted = _wanted(given)
            if given is not None and wanted is None:
                problems.append(Problem(f"{pci} {name}", repr(given), "a name, a number or a boolean"))
            elif name in found:
                problems.append(Problem(f"{pci} {name}", "given twice", "one value for each parameter and index"))
            elif wanted and (wanted.number or 0) > LARGEST:
                problems.append(Problem(f"{pci} {name}", wanted.text, f"a number up to {LARGEST}"))
            else:
                found[name] = wanted
    return found, problems


def make_want(pci: str, common: t.Mapping[str, t.Any], own: t.Mapping[str, t.Any] | None = None) -> Want:
    """Of the options: a device's own values win, null takes a common one away."""
    all_devices, problems = _read(pci, common)
    this_device, more = _read(pci, own or {})
    merged = {**all_devices, **this_device}
    wanted = {name: value for name, value in merged.items() if value is not None}
    return Want(pci, wanted, (*problems, *more))
