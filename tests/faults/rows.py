# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of fabric.yml, read and checked whole. Pure; README.md of this folder has the keys."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).parent / "fabric.yml"
ROLES = ("rail_network", "mlx5_port", "roce_qos", "roce_gid", "mlx5_nvconfig", "fabric_boot")
RUNS = (*ROLES, *(f"apply {role}" for role in ROLES), "mlx5_info", "path_probe", "audit", "boot tool", "fabric")
STEPS = ("host", "peer", "fabric", "door", "fault", "clear", "reboot", "driver", "until", "play")
_ROW = {"text", "fact", "where", "rail", "names", "peer", "alone", "requires", "vars", "set", "undo", "detect", "twin",
        "quick"}
_TWIN = {"text", "set", "undo", "vars", "detect"}
_WHERE = {"class": ("gb200", "l40s"), "owner": ("networkd", "networkmanager")}


class RowError(ValueError):
    """A table that cannot be run; the message names row, key, got and wanted."""


Step = Mapping[str, Any]


@dataclass(frozen=True)
class Detector:
    """``says``: texts that one finding has, all of them. Of the audit the first one is the id of a rule."""

    run: str
    says: tuple[str, ...]


@dataclass(frozen=True)
class Half:
    """A fault, or its twin: a legal state that looks like it."""

    text: str
    set: tuple[Step, ...]
    undo: tuple[Step, ...]
    vars: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    name: str
    fact: str
    fault: Half
    twin: Half
    detect: tuple[Detector, ...]
    twin_detect: tuple[Detector, ...]
    where: Mapping[str, str] = field(default_factory=dict)
    rail: int = 1
    # What the findings must name beside the host: the rail, or nothing more.
    names: str = "rail"
    peer: bool = False
    # It reaches beyond its hosts, so nothing else may run meanwhile.
    alone: bool = False
    # A kind of link that the kernel of this machine may not have.
    requires: str = ""
    quick: bool = False

    @property
    def text(self) -> str:
        return self.fault.text


@dataclass(frozen=True)
class Pair:
    """Rows that come at once, on one host, each on a rail of its own."""

    name: str
    text: str
    rows: tuple[Row, ...]
    quick: bool = False


def _fail(where: str, got: Any, wanted: str) -> RowError:
    return RowError(f"{where}: got {got!r}, wanted {wanted}")


def _steps(where: str, given: Any) -> tuple[Step, ...]:
    if not isinstance(given, list):
        raise _fail(where, given, "a list of steps")
    for position, step in enumerate(given):
        if not isinstance(step, dict) or len(step) != 1 or next(iter(step)) not in STEPS:
            raise _fail(f"{where}[{position}]", step, f"one of {', '.join(STEPS)}")
    return tuple(given)


def _detectors(where: str, given: Any) -> tuple[Detector, ...]:
    found = []
    for position, entry in enumerate(given if isinstance(given, list) else ()):
        here = f"{where}[{position}]"
        if not isinstance(entry, dict) or set(entry) - {"run", "says"} or entry.get("run") not in RUNS:
            raise _fail(here, entry, f"run (one of {', '.join(RUNS)}) and says")
        says = entry.get("says", [])
        says = [says] if isinstance(says, str) else says
        if not isinstance(says, list) or not all(isinstance(text, str) and text for text in says):
            raise _fail(f"{here}.says", says, "texts")
        found.append(Detector(entry["run"], tuple(says)))
    if not found:
        raise _fail(where, given, "at least one detector")
    return tuple(found)


def _keys(where: str, given: Any, known: set[str], must: set[str]) -> None:
    if not isinstance(given, dict):
        raise _fail(where, given, "a mapping")
    wrong = sorted(set(given) - known) + sorted(must - set(given))
    if wrong:
        raise _fail(where, wrong, f"the keys {', '.join(sorted(must))}, perhaps {', '.join(sorted(known - must))}")


def row(name: str, given: Any) -> Row:
    _keys(name, given, _ROW, {"text", "fact", "set", "undo", "detect", "twin"})
    twin = given["twin"]
    _keys(f"{name}.twin", twin, _TWIN, {"text", "set", "undo"})
    for key, value in given.get("where", {}).items():
        if value not in _WHERE.get(key, ()):
            raise _fail(f"{name}.where", {key: value}, str(_WHERE))
    detect = _detectors(f"{name}.detect", given["detect"])
    silent = [detector.run for detector in detect if not detector.says]
    if silent:
        raise _fail(f"{name}.detect", silent, "what each of them says")
    common = given.get("vars", {})
    fault = Half(given["text"], _steps(f"{name}.set", given["set"]), _steps(f"{name}.undo", given["undo"]), common)
    legal = Half(twin["text"], _steps(f"{name}.twin.set", twin["set"]), _steps(f"{name}.twin.undo", twin["undo"]),
                 {**common, **twin.get("vars", {})})
    names = given.get("names", "rail")
    if names not in ("rail", "host"):
        raise _fail(f"{name}.names", names, "rail or host")
    return Row(name, given["fact"], fault, legal, detect,
               _detectors(f"{name}.twin.detect", twin["detect"]) if "detect" in twin else detect,
               given.get("where", {}), given.get("rail", 1), names, given.get("peer", False), given.get("alone", False),
               given.get("requires", ""), given.get("quick", False))


def _pair(name: str, given: Any, rows: Mapping[str, Row]) -> Pair:
    _keys(name, given, {"text", "rows", "quick"}, {"text", "rows"})
    unknown = sorted(set(given["rows"]) - set(rows))
    if unknown or len(given["rows"]) != 2:
        raise _fail(f"{name}.rows", given["rows"], "two rows of the table, each with its rail")
    return Pair(name, given["text"], tuple(replace(rows[one], rail=rail) for one, rail in given["rows"].items()),
                given.get("quick", False))


def load(path: Path = TABLE) -> tuple[dict[str, Row], dict[str, Pair]]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    _keys(path.name, data, {"rows", "pairs"}, {"rows", "pairs"})
    rows = {name: row(name, given) for name, given in data["rows"].items()}
    return rows, {name: _pair(name, given, rows) for name, given in data["pairs"].items()}


def choose(rows: Mapping[str, Row], pairs: Mapping[str, Pair], names: list[str], quick: bool
           ) -> tuple[dict[str, Row], dict[str, Pair]]:
    """Those with these names, or the quick ones, or all."""
    if names:
        return ({name: rows[name] for name in rows if name in names},
                {name: pairs[name] for name in pairs if name in names})
    return ({name: row for name, row in rows.items() if row.quick or not quick},
            {name: pair for name, pair in pairs.items() if pair.quick or not quick})
