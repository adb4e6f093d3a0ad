# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of faults: rows of table.yml, read and checked whole before one is used."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.instance import LabError

TABLE = Path(__file__).parent / "table.yml"
TARGETS = ("host", "rails", "rail", "leaf")
HOST_VALUES = ("host", "leaf")
RAIL_VALUES = ("rail", "port", "interface", "mac", "bridge", "rate", "bucket", "port_mtu", "pci", "rdma")
NAME = re.compile(r"[a-z][a-z0-9-]*")
PLACEHOLDER = re.compile(r"\{(\w+)(?:\*(\w+))?\}")
# mechanism -> (keys it must have, keys it may have)
MECHANISMS: dict[str, tuple[set[str], set[str]]] = {
    "fabric": ({"set"}, {"clear"}),
    "host": ({"set"}, {"clear"}),
    "hardware": ({"set", "clear"}, set()),
    "tool": ({"name", "content"}, set()),
    "full": ({"directory"}, set()),
    "power": ({"set", "clear"}, set()),
    "watch": ({"process", "logins", "delay"}, set()),
}
# Texts that stand as they are: a tool's content is a program with braces of its own.
LITERAL = {("tool", "content")}


class FaultError(LabError):
    """A fault that cannot be read, set or cleared; the message names what there is."""


def _word(text: str, pattern: str, wanted: str) -> str:
    if not re.fullmatch(pattern, text):
        raise FaultError(f"got {text!r}, wanted {wanted}")
    return text


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    default: Any
    text: str
    least: int = 0
    most: int = 1 << 31

    def parse(self, text: str) -> Any:
        """The value of a command line's text. Raises FaultError."""
        if self.kind not in KINDS:
            raise FaultError(f"kind: got {self.kind!r}, wanted one of {', '.join(KINDS)}")
        try:
            return KINDS[self.kind](self, text)
        except FaultError as error:
            raise FaultError(f"parameter {self.name}: {error}") from None


def _whole(parameter: Parameter, text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text) or not parameter.least <= int(text) <= parameter.most:
        raise FaultError(f"got {text!r}, wanted a whole number from {parameter.least} to {parameter.most}")
    return int(text)


def _share(_parameter: Parameter, text: str) -> float:
    value = float(_word(text, r"0?\.[0-9]+", "a share between 0 and 1, such as 0.5"))
    if value == 0:
        raise FaultError(f"got {text!r}, wanted more than 0; for nothing at all there is link-down")
    return value


KINDS = {
    "rail": _whole,
    "whole": _whole,
    "share": _share,
    "seconds": lambda _parameter, text: float(_word(text, r"[0-9]+(\.[0-9]+)?", "seconds, such as 1.5")),
    "word": lambda _parameter, text: _word(text, r"[A-Za-z0-9][A-Za-z0-9._+-]*", "the name of a program, no path"),
    "names": lambda _parameter, text: _word(text, r"[A-Za-z0-9._+-]+(,[A-Za-z0-9._+-]+)*", "names, between commas"),
    "path": lambda _parameter, text: _word(text, r"(/[A-Za-z0-9._@+-]+)+", "an absolute path of plain characters"),
}
RAIL = Parameter("rail", "rail", 0, "number of the rail", 0, 15)


@dataclass(frozen=True)
class Row:
    """One fault. ``data`` is the row as it was read; a record keeps it, so that it can be cleared without the table."""

    name: str
    text: str
    fact: str
    target: str
    parameters: dict[str, Parameter]
    survives_reboot: bool
    touches: str
    after_clear: str
    steps: tuple[tuple[str, dict[str, Any]], ...]
    data: dict[str, Any]


def placeholders(value: Any, mechanism: str = "") -> set[str]:
    """Names between braces in a text, or in all texts of a mapping."""
    if isinstance(value, Mapping):
        return {name for key, item in value.items() if (mechanism, key) not in LITERAL for name in placeholders(item)}
    if not isinstance(value, str):
        return set()
    return {name for pair in PLACEHOLDER.findall(value) for name in pair if name}


def expand(value: Any, values: Mapping[str, Any], mechanism: str = "") -> Any:
    """``value`` with its placeholders filled; a text that is one placeholder becomes the value itself."""
    if isinstance(value, Mapping):
        return {key: item if (mechanism, key) in LITERAL else expand(item, values) for key, item in value.items()}
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        first, second = match.groups()
        return str(round(values[first] * values[second]) if second else values[first])

    whole = PLACEHOLDER.fullmatch(value)
    return values[whole.group(1)] if whole and not whole.group(2) else PLACEHOLDER.sub(one, value)


def _steps(where: str, entries: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    if not isinstance(entries, list) or not entries:
        raise FaultError(f"{where}.steps: got {entries!r}, wanted a list of steps")
    steps = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or len(entry) != 1:
            raise FaultError(f"{where}.steps[{number}]: got {entry!r}, wanted one mechanism with its keys")
        (mechanism, keys), = entry.items()
        if mechanism not in MECHANISMS:
            raise FaultError(f"{where}.steps[{number}]: mechanism {mechanism!r}, wanted one of {', '.join(MECHANISMS)}")
        must, may = MECHANISMS[mechanism]
        if not isinstance(keys, dict) or not must <= set(keys) <= must | may:
            raise FaultError(f"{where}.steps[{number}].{mechanism}: got {keys!r}, wanted the keys "
                             f"{', '.join(sorted(must))}" + (f"; {', '.join(sorted(may))} may be there" if may else ""))
        steps.append((mechanism, keys))
    return tuple(steps)


def _parameters(where: str, target: str, entries: Any) -> dict[str, Parameter]:
    found = {"rail": RAIL} if target in ("rail", "leaf") else {}
    for name, entry in (entries or {}).items():
        try:
            parameter = Parameter(name, **entry)
            if parameter.parse(str(parameter.default)) != parameter.default:
                raise FaultError(f"default {parameter.default!r} is no value of kind {parameter.kind}")
        except (TypeError, FaultError) as error:
            raise FaultError(f"{where}.parameters.{name}: {error}") from None
        if name in HOST_VALUES + RAIL_VALUES:
            raise FaultError(f"{where}.parameters.{name}: the name has a meaning already")
        found[name] = parameter
    return found


def row(name: str, data: Any, where: str = "") -> Row:
    """One row, checked. Raises FaultError that names row, key, what was found and wanted."""
    where = where or name
    must, may = {"text", "fact", "target", "survives_reboot", "touches", "steps"}, {"parameters", "after_clear"}
    if not NAME.fullmatch(name) or not isinstance(data, dict):
        raise FaultError(f"{where}: wanted a mapping, under a name of lower-case letters, digits and dashes")
    wrong = sorted((must - set(data)) | (set(data) - must - may))
    if wrong:
        raise FaultError(f"{where}: missing or unknown: {', '.join(wrong)}")
    for key in ("text", "fact", "touches"):
        if not isinstance(data[key], str) or not data[key].strip():
            raise FaultError(f"{where}.{key}: got {data[key]!r}, wanted a text")
    if data["target"] not in TARGETS:
        raise FaultError(f"{where}.target: got {data['target']!r}, wanted one of {', '.join(TARGETS)}")
    if not isinstance(data["survives_reboot"], bool):
        raise FaultError(f"{where}.survives_reboot: got {data['survives_reboot']!r}, wanted true or false")
    parameters = _parameters(where, data["target"], data.get("parameters"))
    steps = _steps(where, data["steps"])
    known = {*HOST_VALUES, *parameters, *(RAIL_VALUES if data["target"] != "host" else ())}
    used = placeholders(data["touches"]) | placeholders(data.get("after_clear", ""))
    for mechanism, keys in steps:
        used |= placeholders(keys, mechanism)
        if mechanism == "tool" and keys["content"] is None and not data["survives_reboot"]:
            raise FaultError(f"{where}: a tool that is gone cannot come back by a reboot: survives_reboot must be true")
    if used - known:
        raise FaultError(f"{where}: unknown placeholder {', '.join(sorted(used - known))}; "
                         f"there are: {', '.join(sorted(known))}")
    return Row(name, data["text"], data["fact"], data["target"], parameters, data["survives_reboot"], data["touches"],
               data.get("after_clear", ""), steps, data)


def load(path: Path = TABLE) -> dict[str, Row]:
    """All rows of a table file, by name."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise FaultError(f"{path}: {error}") from error
    if not isinstance(data, dict) or not data:
        raise FaultError(f"{path}: got {type(data).__name__}, wanted a mapping of faults by name")
    return {name: row(name, entry, f"{path}: {name}") for name, entry in data.items()}


def values_of(wanted: Row, texts: list[str]) -> dict[str, Any]:
    """Parameters of a command line, ``key=value`` each; what is not given has its default."""
    values = {name: parameter.default for name, parameter in wanted.parameters.items()}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in wanted.parameters:
            there = ", ".join(f"{key}={item.default}" for key, item in wanted.parameters.items()) or "none"
            raise FaultError(f"{wanted.name}: unknown parameter {text!r}; there are: {there}")
        try:
            values[name] = wanted.parameters[name].parse(value)
        except FaultError as error:
            raise FaultError(f"{wanted.name}: {error}") from None
    return values
