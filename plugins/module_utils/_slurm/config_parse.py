# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Slurm's configuration files as lines of keys and values. Pure; as src/common/parse_config.c reads them."""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

_PAIR = re.compile(r"""\s*([A-Za-z][A-Za-z0-9_.]*)\s*[-+*/]?=\s*(?:"([^"]*)"|(\S+))""")
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*")


class ConfError(ValueError):
    """A line that is no list of keys and values; the message has its number."""


@dataclass(frozen=True)
class Line:
    """``pairs`` in their order with the keys in lower case; an Include has the one key `include`."""

    number: int
    pairs: tuple[tuple[str, str], ...]

    def get(self, key: str) -> str | None:
        return next((value for name, value in self.pairs if name == key), None)

    @property
    def first(self) -> str:
        return self.pairs[0][0]


def _joined(text: str) -> t.Iterator[tuple[int, str]]:
    """Lines without comments; one that ends with a backslash goes on."""
    waiting, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw).rstrip()
        start = start if waiting else number
        if line.endswith("\\"):
            waiting += line[:-1] + " "
            continue
        yield start, waiting + line
        waiting = ""
    if waiting:
        yield start, waiting


def lines(text: str) -> list[Line]:
    found = []
    for number, line in _joined(text):
        if not line.strip():
            continue
        include = _INCLUDE.fullmatch(line)
        if include:
            found.append(Line(number, (("include", include[1]),)))
            continue
        pairs, place = [], 0
        while place < len(line.rstrip()):
            pair = _PAIR.match(line, place)
            if not pair:
                raise ConfError(f"line {number}: got {line[place:].strip()[:60]!r}, wanted Key=Value")
            pairs.append((pair[1].lower(), pair[2] if pair[2] is not None else pair[3]))
            place = pair.end()
        found.append(Line(number, tuple(pairs)))
    return found
