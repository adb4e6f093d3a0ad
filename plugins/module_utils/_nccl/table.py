# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The table of results: what the column header promises, and rows put together from their pieces.

A row is printed in three parts (nccl-tests src/util.cu writeBenchmarkLine*), so lines of NCCL or of
other ranks can fall between them. Columns are taken by the header, never by position: redop and root
come and go between tools and versions.
"""
from __future__ import annotations

from dataclasses import dataclass

from .model import Cell, Row

# nccl-tests src/common.cu test_typenames (v2.19): bytes of one element.
TYPE_BYTES = {
    "int8": 1, "char": 1, "uint8": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "half": 2, "float": 4, "double": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1,
}
# Largest difference that still is rounding, by type: nccl-tests v2.0.0 src/common.cu DeltaMaxValue
# (before 2.13.0 the last column is a difference; from then on it counts wrong elements).
_LARGEST_DELTA = {"half": 1e-2, "bfloat16": 1e-2, "float": 1e-5, "double": 1e-12}
_TIMES = ("time", "cputime")
# Columns before the first time, in all versions.
_LEADING = frozenset({"size", "bytes", "count", "N", "type", "op", "redop", "root"})
_MAX_COLUMNS = 64
_MAX_DIGITS = 20


@dataclass(frozen=True)
class Layout:
    """Where the values of a row stand, counted from the first time column."""

    name: str
    redop: bool
    root: bool
    half: int
    width: int
    columns: tuple[str, ...]
    counts_wrong: bool
    time_scale: float

    @property
    def plain(self) -> bool:
        return self.columns[:4] in (("time", "algbw", "busbw", "#wrong"), ("time", "algbw", "busbw", "error"))


def read_layout(text: str) -> Layout | None:
    """The layout that a column header line announces; None if the line is cut or is none."""
    names = text.lstrip("# ").split()
    times = [index for index, name in enumerate(names) if name in _TIMES]
    if len(times) != 2 or len(names) > _MAX_COLUMNS:
        return None
    first, second = times
    half, prefix = second - first, names[:first]
    columns = ("time", *names[first + 1:second])
    if not {"algbw", "busbw"} <= set(columns) or names[second + 1:second + half] != list(columns[1:]):
        return None
    extra = names[second + half:]
    # "timestamp" is a date and a time: two words in the row.
    width = 2 * half + len(extra) + extra.count("timestamp")
    return Layout(
        _layout_name(prefix, columns, extra), "redop" in prefix or "op" in prefix, "root" in prefix, half, width,
        columns, "#wrong" in columns,
        # 1.0 prints milliseconds under a header that names the sizes "bytes" and the check "res".
        1000.0 if "bytes" in prefix and "res" in columns else 1.0,
    )


def _layout_name(prefix: list[str], columns: tuple[str, ...], extra: list[str]) -> str:
    if "res" in columns:
        name = "1.0"
    elif "error" in columns:
        name = "2.0"
    elif "#wrong" in columns:
        name = "2.13"
    else:
        name = "unknown"
    parts = [name, *(["root"] if "root" in prefix and name == "2.0" else []), *extra]
    return "+".join([*parts, "per-iteration"] if "i_min" in columns else parts)


def number(token: str) -> float | None:
    """The value of a table field: None for N/A; raises ValueError for what is no value."""
    return None if token == "N/A" else float(token)


def is_value(token: str) -> bool:
    try:
        number(token)
    except ValueError:
        return False
    return True


def _integer(token: str) -> int:
    if len(token) > _MAX_DIGITS:
        raise ValueError(token)
    return int(token)


class RowBuilder:
    """Collects the pieces of one row at a time. ``broken`` counts rows that never became whole."""

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self.broken = 0
        self._pieces: list[str] = []

    @property
    def pending(self) -> bool:
        return bool(self._pieces)

    def abort(self) -> None:
        """Something that is no part of a row came: the row begun is lost."""
        if self._pieces:
            self.broken += 1
            self._pieces = []

    def add(self, tokens: list[str]) -> Row | None:
        """The row that these tokens begin or complete, once it is whole."""
        if len(tokens) >= 3 and tokens[2][0].isalpha() and self._starts(tokens):
            self.abort()
            self._pieces = tokens
        elif self._pieces and len(self._pieces) <= _MAX_COLUMNS:
            self._pieces = self._pieces + tokens
        else:
            # Values without their row's first part: that part was lost.
            self.broken += bool(self.layout) and all(map(is_value, tokens))
            return None
        return self._finish()

    @staticmethod
    def _starts(tokens: list[str]) -> bool:
        return (tokens[2] in TYPE_BYTES or len(tokens) > 4) and tokens[0].isdigit() and tokens[1].isdigit()

    def _finish(self) -> Row | None:
        layout, tokens = self.layout, self._pieces
        if layout is None:
            # Rows under no header: their columns cannot be known.
            self.abort()
            return None
        at = 3
        redop = ""
        if layout.redop and len(tokens) > at and not tokens[at].lstrip("-")[:1].isdigit() and not is_value(tokens[at]):
            redop = tokens[at]
            at += 1
        values = at + (1 if layout.root else 0)
        if len(tokens) < values + layout.width:
            return None
        try:
            if len(tokens) > values + layout.width:
                raise ValueError("more values than columns")
            row = self._row(layout, tokens, redop, at, values)
        except ValueError:
            self.abort()
            return None
        self._pieces = []
        return row

    @staticmethod
    def _row(layout: Layout, tokens: list[str], redop: str, at: int, values: int) -> Row:
        half = layout.half
        # As number() does it, but rows are the hot path.
        first, second = (
            [None if token == "N/A" else float(token) for token in tokens[start:start + half]]
            for start in (values, values + half))
        return Row(
            _integer(tokens[0]), _integer(tokens[1]), tokens[2], redop,
            _integer(tokens[at]) if layout.root else None,
            _cell(layout, tokens[2], first), _cell(layout, tokens[2], second),
        )


def _cell(layout: Layout, kind: str, values: list[float | None]) -> Cell:
    if layout.plain:
        time, algbw, busbw, check = values[:4]
    else:
        named = dict(zip(layout.columns, values))
        time, algbw, busbw = named["time"], named["algbw"], named["busbw"]
        check = named.get("#wrong", named.get("error", named.get("res")))
    if time is None or algbw is None or busbw is None:
        raise ValueError("a figure is N/A")
    if check is not None and not layout.counts_wrong and check <= _LARGEST_DELTA.get(kind, 0.0):
        check = 0.0
    cell = Cell(time * layout.time_scale, algbw, busbw, check)
    if layout.half > 4:
        cell.extra = {name: value for name, value in zip(layout.columns, values)
                      if value is not None and name.startswith("i_")}
    return cell


def columns_of(text: str) -> bool:
    """Whether a line looks like a column header, whole or not."""
    return "busbw" in text and "algbw" in text


class CutHeader:
    """A column header that other ranks' lines fell into: its beginning, until the rest comes on a line of its own.

    Launchers pass on what a rank wrote in chunks of some kilobytes and not in lines (seen with Open MPI 5), and while
    rank 0 prints the header the others still log. Where its beginning ends is not known when a host name follows
    without a space, so each place is tried; only a header that is whole and consistent is taken.
    """

    _TRIES = 64
    _MOST_PLACES = 32

    def __init__(self, before: str, glued: str) -> None:
        # The longest first: "redop" glued to a host name is a column, and a table without it has a header as well.
        self._beginnings = [before + glued[:length] for length in range(min(len(glued), self._MOST_PLACES), -1, -1)]
        self.tries = self._TRIES

    @staticmethod
    def begins(text: str) -> bool:
        """Whether this is a column header's beginning and no whole header."""
        return text.lstrip("# \t").startswith(("size ", "bytes ")) and text.lstrip()[0] == "#" and not read_layout(text)

    def joined(self, rest: str) -> str:
        """The whole header, or nothing if ``rest`` is not the rest of it."""
        self.tries -= 1
        if len(rest) > 512:
            return ""
        return next((whole for whole in (beginning + rest for beginning in self._beginnings)
                     if columns_of(whole) and read_layout(whole) and self._named(whole)), "")

    @staticmethod
    def _named(text: str) -> bool:
        """No word of it is what two halves of different words make: "redo" of "redop" lost leaves a column "p"."""
        names = text.lstrip("# ").split()
        first = next(index for index, name in enumerate(names) if name in _TIMES)
        return _LEADING.issuperset(names[:first])
