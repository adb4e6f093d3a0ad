# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A run in check mode as a plan: what each role would do on each host. Pure."""
from __future__ import annotations

import re
import typing as t
from collections import Counter
from dataclasses import asdict, dataclass, field

SCHEMA_VERSION = 1
TITLES = ("HOSTS", "ROLE", "CHANGES", "DISRUPTIVE", "AFTERWARDS", "REMARKS")
# What a role says of a step that depends on one that was only predicted.
_UNPREDICTABLE = re.compile(r"unpredictable until [^;]*")
_NUMBERED = re.compile(r"(.*?)(\d+)")
_REMARKS = ("unpredictable", "deferred", "failed")


@dataclass
class Cell:
    """One role on one host. ``disruptive`` counts steps by what they disturb; ``afterwards`` is what is still to do."""

    changes: int = 0
    commands: list[list[str]] = field(default_factory=list)
    disruptive: Counter[str] = field(default_factory=Counter)
    afterwards: list[str] = field(default_factory=list)
    unpredictable: list[str] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return self == Cell()

    def _once(self, name: str, text: str) -> None:
        found: list[str] = getattr(self, name)
        if text not in found:
            found.append(text)

    def add(self, result: t.Mapping[str, t.Any]) -> None:
        """Take in the result of a task, or of each item of a loop."""
        items = result.get("results")
        if isinstance(items, list) and items and all(isinstance(item, t.Mapping) for item in items):
            for item in items:
                self.add(item)
            return
        if result.get("changed"):
            commands = [list(map(str, argv)) for argv in _lists(result.get("commands"))]
            self.changes += len(commands) or 1
            self.commands += commands
        self._remarks(result)
        for message in _texts(result.get("msg")):
            for match in _UNPREDICTABLE.findall(message):
                self._once("unpredictable", match.strip())

    def _remarks(self, result: t.Mapping[str, t.Any]) -> None:
        for step in _mappings(result.get("steps")):
            if step.get("disruptive", "none") != "none":
                self.disruptive[str(step["disruptive"])] += 1
        for key, value in result.items():
            if key.endswith("_required") and value is True:
                self._once("afterwards", key[:-len("_required")].replace("_", " "))
        for entry in _mappings(result.get("deferred")):
            words = [f"{key} {_text(value)}" for key, value in entry.items() if value is not None]
            self._once("deferred", "; ".join(words))

    def fail(self, result: t.Mapping[str, t.Any]) -> None:
        items = [item for item in _mappings(result.get("results")) if item.get("failed")] or [result]
        for item in items:
            self._once("failed", "; ".join(_texts(item.get("msg"))) or "failed without a message")


Cells = t.Mapping[tuple[str, str], Cell]


def _lists(value: t.Any) -> list[list[t.Any]]:
    return [item for item in value if isinstance(item, list)] if isinstance(value, list) else []


def _mappings(value: t.Any) -> list[t.Mapping[str, t.Any]]:
    return [item for item in value if isinstance(item, t.Mapping)] if isinstance(value, list) else []


def _texts(value: t.Any) -> list[str]:
    return [value] if isinstance(value, str) else [item for item in value if isinstance(item, str)] \
        if isinstance(value, list) else []


def _text(value: t.Any) -> str:
    """A list in words; steps, which may be long, by the program or deed of each."""
    if isinstance(value, list) and value and all(isinstance(item, list) and item for item in value):
        return f"{len(value)} ({', '.join(dict.fromkeys(str(item[0]) for item in value))})"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def compress(hosts: t.Sequence[str]) -> str:
    """Names in the words of --limit: ``gb[1:4]``, ``gb[01:18]``; names apart by commas. Order is kept."""
    runs: list[tuple[str, str, str]] = []
    for host in hosts:
        match = _NUMBERED.fullmatch(host)
        stem, number = match.groups() if match else (host, "")
        if runs and number and runs[-1][0] == stem and runs[-1][2]:
            last = runs[-1][2]
            if int(number) == int(last) + 1 and len(number) == len(str(int(last) + 1).zfill(len(last))):
                runs[-1] = (stem, runs[-1][1], number)
                continue
        runs.append((stem, number, number))
    return ",".join(f"{stem}{first}" if first == last else f"{stem}[{first}:{last}]" for stem, first, last in runs)


def _counted(disruptive: t.Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(disruptive.items()))


def _row(cell: Cell) -> tuple[str, ...]:
    disruptive = _counted(cell.disruptive)
    remarks = ", ".join(name for name in _REMARKS if getattr(cell, name))
    return str(cell.changes or "-"), disruptive or "-", ", ".join(cell.afterwards) or "-", remarks or "-"


def _aligned(rows: t.Sequence[t.Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]


def _grouped(cells: Cells, hosts: t.Sequence[str], key: t.Callable[[Cell], t.Any]) -> list[tuple[str, str, t.Any]]:
    """(hosts, role, key) in the order in which the roles ran; hosts with the same key together."""
    found: dict[tuple[str, t.Any], list[str]] = {}
    roles = list(dict.fromkeys(role for _host, role in cells))
    for role in roles:
        for host in hosts:
            cell = cells.get((host, role))
            if cell is not None and not cell.idle:
                found.setdefault((role, key(cell)), []).append(host)
    return [(compress(names), role, what) for (role, what), names in found.items()]


def table(cells: Cells, hosts: t.Sequence[str], unreachable: t.Mapping[str, str]) -> list[str]:
    """The lines of the screen: the table, what its remarks mean, and the sum."""
    rows = [(names, role, *row) for names, role, row in _grouped(cells, hosts, _row)]
    lines = _aligned([TITLES, *rows]) if rows else []
    for name in _REMARKS:
        for names, role, texts in _grouped(cells, hosts, lambda cell, name=name: tuple(getattr(cell, name))):  # type: ignore[misc]
            lines += [f"{names}: {role}: {'' if name == 'unpredictable' else name + ': '}{text}" for text in texts]
    lines += [f"{host}: unreachable: {text}" for host, text in unreachable.items()]
    quiet = [host for host in hosts if host not in unreachable
             and all(cell.idle for (name, _role), cell in cells.items() if name == host)]
    if quiet:
        lines.append(f"{compress(quiet)}: nothing to do")
    return [*lines, summary(cells, hosts, unreachable)]


def summary(cells: Cells, hosts: t.Sequence[str], unreachable: t.Mapping[str, str]) -> str:
    def count(test: t.Callable[[Cell], t.Any]) -> int:
        return len({host for (host, _role), cell in cells.items() if test(cell)})

    disruptive: Counter[str] = sum((cell.disruptive for cell in cells.values()), Counter())
    parts = [f"{len(hosts)} hosts", f"{count(lambda cell: cell.changes)} with changes",
             f"{count(lambda cell: cell.disruptive)} with disruptive steps"
             + (f" ({_counted(disruptive)})" if disruptive else ""),
             f"{count(lambda cell: cell.afterwards)} to reset or reboot afterwards",
             f"{count(lambda cell: cell.unpredictable)} with unpredictable parts",
             f"{count(lambda cell: cell.failed)} failed", f"{len(unreachable)} unreachable"]
    return ", ".join(parts)


def document(cells: Cells, hosts: t.Sequence[str], unreachable: t.Mapping[str, str], time: str) -> dict[str, t.Any]:
    """The plan for programs: every host, also one with nothing to do."""
    return {
        "schema_version": SCHEMA_VERSION, "kind": "plan", "time": time,
        "hosts": {host: {"unreachable": unreachable.get(host),
                         "roles": {role: {**asdict(cell), "disruptive": dict(cell.disruptive)}
                                   for (name, role), cell in cells.items() if name == host and not cell.idle}}
                  for host in hosts},
    }
