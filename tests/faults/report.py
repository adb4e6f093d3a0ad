# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results as a table, as data, and the table of rows for docs/faults.md. Pure."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tests.faults.evaluate import Result
from tests.faults.rows import Half, Pair, Row

TITLES = ("ROW", "STATE", "HOST", "DETECTED BY", "VERDICT", "SECONDS")


def _cells(result: Result) -> tuple[str, ...]:
    detectors = ", ".join(result.detectors) or "-"
    return (result.name, result.phase, result.host, detectors, result.verdict, f"{result.seconds:.1f}")


def aligned(lines: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def text(results: Sequence[Result], seconds: float) -> str:
    """Table, what failed, and the counts."""
    lines = aligned([TITLES, *map(_cells, results)])
    lines += [f"{result.name} ({result.phase}) on {result.host}: {reason}" for result in results if not result.good
              for reason in result.why]
    counts = Counter(result.verdict for result in results)
    lines.append(f"{', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}; "
                 f"{seconds:.0f} s in all")
    return "\n".join(lines)


def data(results: Iterable[Result]) -> list[dict[str, Any]]:
    return [{**asdict(result), "seconds": round(result.seconds, 1)} for result in results]


def _cell(value: str) -> str:
    return value.replace("|", "\\|")


_KINDS = {"host": "commands in the host", "peer": "commands in the other host", "fabric": "commands at the switch",
          "door": "the hardware model", "fault": "lab fault", "reboot": "reboot", "driver": "driver reload",
          "play": "a run of a role"}


def set_by(half: Half) -> str:
    """The kinds of steps that set it, in words."""
    kinds = [next(iter(step)) for step in half.set]
    return ", ".join(dict.fromkeys(_KINDS[kind] for kind in kinds if kind in _KINDS)) or "nothing"


def _found_by(row: Row) -> str:
    return ", ".join(f"{detector.run}{f' `{detector.says[0]}`' if detector.run == 'audit' else ''}"
                     for detector in row.detect)


BEGIN, END = "<!-- made by: python -m tests.faults --docs -->\n", "<!-- end -->"


def inserted(document: str, rows: Mapping[str, Row], pairs: Mapping[str, Pair]) -> str:
    """The document with the table of these rows in place of the one that it has."""
    before, _begin, rest = document.partition(BEGIN)
    return f"{before}{BEGIN}{markdown(rows, pairs)}{END}{rest.partition(END)[2]}"


def markdown(rows: Mapping[str, Row], pairs: Mapping[str, Pair]) -> str:
    """The part of docs/faults.md that is made from the table."""
    lines = ["| row | fault | set by | found by | legal twin | fact |", "|---|---|---|---|---|---|"]
    for row in rows.values():
        name = f"`{row.name}`{' (quick)' if row.quick else ''}"
        cells = (name, row.text, set_by(row.fault), _found_by(row), row.twin.text, row.fact)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    lines += ["", "Two at once, on two rails of one host:", "", "| pair | fault | rows |", "|---|---|---|"]
    for pair in pairs.values():
        what = ", ".join(f"`{row.name}` on rail {row.rail}" for row in pair.rows)
        lines.append(f"| `{pair.name}`{' (quick)' if pair.quick else ''} | {pair.text} | {what} |")
    return "\n".join(lines) + "\n"
