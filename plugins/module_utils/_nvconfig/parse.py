# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Texts of mlxconfig/mstconfig and mlxfwreset/mstfwreset, taken apart. Pure.

Layout [mstflint mlxconfig/mlxcfg_ui.cpp, small_utils/mstfwreset.py]. Widths of columns changed over versions, and a
value wider than its column leaves one blank: rows are split at white space.
"""
from __future__ import annotations

import re
import typing as t

from .model import Reading, Row, Value

_HEADING = re.compile(r"Configurations:\s+(?=\S)")
_COLUMNS = {("default", "current", "next"), ("default", "next"), ("current", "next"), ("next",)}
_FLAGS = {"*", "RO"}
_ERROR = re.compile(r"-E-\s*(.*)")
_NOTES = ("The '*' shows", "The 'RO' shows", "Device Firmware does not support reading", "-W-", "-I-")
_UNKNOWN = re.compile(r"unknown parameter|doesn't support|does not support|failed to find param|not supported", re.I)
_POWER_CYCLE = re.compile(r"-I-.*power cycle", re.I)
_LEVEL = re.compile(r"(\d+): .*-\s*(not )?supported\b", re.I)


def _columns(line: str) -> tuple[str, ...] | None:
    """Columns of a `Configurations:` heading; None if it is none."""
    found = _HEADING.match(line.strip())
    if found is None:
        return None
    columns = tuple(line.strip()[found.end():].replace("Next Boot", "next").lower().split())
    if columns not in _COLUMNS:
        raise ValueError(f"unknown columns in {line.strip()!r}")
    return columns


def _row(line: str, columns: tuple[str, ...]) -> Row:
    words = line.split()
    flags = []
    while words and words[0] in _FLAGS:
        flags.append(words.pop(0))
    if len(words) != len(columns) + 1:
        raise ValueError(f"{len(words)} words in {line.strip()!r}, wanted a name and {len(columns)} values")
    values = dict(zip(columns, map(Value, words[1:])))
    return Row(words[0], values["next"], values.get("default"), values.get("current"), "RO" in flags)


def query(text: str, pci: str) -> Reading:
    """The answer to `-e q NAME ...` of one device. Raises ValueError for what is no such answer."""
    columns: tuple[str, ...] | None = None
    headings: dict[str, str] = {}
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        if line.startswith("Device #") and headings:
            raise ValueError("more than one device")
        if columns is None:
            columns = _columns(line)
            label, colon, rest = line.partition(":")
            if colon and columns is None:
                headings[label.strip()] = rest.strip()
        elif line.strip() and not line.strip().startswith(_NOTES):
            row = _row(line, columns)
            if row.name in rows:
                raise ValueError(f"{row.name} twice")
            rows[row.name] = row
    if columns is None:
        raise ValueError("no line that begins with 'Configurations:'")
    card = ", ".join(headings[label] for label in ("Name", "Description") if headings.get(label, "N/A") != "N/A")
    return Reading(pci, headings.get("Device type") or None, card or None, rows)


def errors(text: str) -> list[str]:
    """What stands behind `-E-`; the tools print it to the standard output."""
    return [found.group(1).strip() for line in text.splitlines() if (found := _ERROR.match(line.strip()))]


def unknown(text: str, names: t.Iterable[str]) -> str | None:
    """The one of ``names`` that an error says is not known; None if that is not what it says.

    Seen: "Unknown Parameter: X", "The Device doesn't support X parameter", "Failed to find Param / TLV with name 'X'".
    """
    for error in errors(text):
        if _UNKNOWN.search(error):
            said = set(re.findall(r"[A-Z][A-Z0-9_]*(?:\[\d+\])?", error))
            found = [name for name in names if name in said or name.partition("[")[0] in said]
            if found:
                return found[0]
    return None


def wants_power_cycle(text: str) -> bool:
    """Whether `set` said that a reboot is not enough."""
    return _POWER_CYCLE.search(text) is not None


def reset_levels(text: str) -> frozenset[int]:
    """Supported levels of `mlxfwreset query`. Raises ValueError for another text."""
    levels: set[int] = set()
    inside = seen = False
    for line in text.splitlines():
        if line.startswith("Reset-"):
            inside = line.startswith("Reset-levels")
            seen = seen or inside
        found = _LEVEL.match(line.strip()) if inside else None
        if found and not found.group(2):
            levels.add(int(found.group(1)))
    if not seen:
        raise ValueError("no line that begins with 'Reset-levels'")
    return frozenset(levels)
