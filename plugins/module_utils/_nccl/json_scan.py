# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""A JSON reader that takes text in pieces, keeps no document and forgives what nccl-tests writes.

Bare ``inf`` and ``nan`` are values, a file may end anywhere, and times_us lists may be long: the standard
reader needs the whole text and refuses all three. Handlers get the path of a value, never a tree.
"""
from __future__ import annotations

import re
import typing as t

MAX_TOKEN_CHARS = 1 << 20
MAX_DEPTH = 32

_SPACE = " \t\r\n"
_TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|"((?:[^"\\]|\\.)*)"|([^\s{}\[\],:"]+)(?=[\s{}\[\],:"]))', re.DOTALL)
# A list of plain numbers in one go: times_us and per_process_max_times_us make a report long.
_NUMBERS = re.compile(r"[-+0-9.eE, \t\r\n]{32,2048}")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

Path = list[t.Union[str, int]]
Scalar = t.Union[str, float, None]


class JsonEvents(t.Protocol):
    def scalar(self, path: Path, value: Scalar) -> None:
        """A value that is no container; numbers are floats, also inf and nan."""

    def numbers(self, path: Path, values: list[float]) -> None:
        """Several values of one list at once; the path is that of the first."""

    def closed(self, path: Path) -> None:
        """The container at this path is complete."""


class JsonScanner:
    """``state``: ``open`` (more to come), ``done`` (the root closed) or ``bad`` (no JSON after all)."""

    def __init__(self, events: JsonEvents) -> None:
        self._events = events
        self._rest = ""
        # One entry for each open container: its bracket and the present key or index.
        self._kinds: list[str] = []
        self._path: Path = []
        self._key: str | None = None
        self.state = "open"

    def feed(self, text: str) -> str:
        """Take text; returns what was not consumed once the state is no longer ``open``."""
        text = self._rest + text
        at = 0
        while self.state == "open":
            if self._kinds and self._kinds[-1] == "[":
                at = self._numbers(text, at)
            match = _TOKEN.match(text, at)
            if match is None:
                break
            at = match.end()
            if match.lastindex == 1:
                self._mark(match[1])
            elif match.lastindex == 2:
                self._string(match[2])
            else:
                self._value(_literal(match[3]))
        self._rest = text[at:]
        if self.state != "open":
            rest, self._rest = self._rest, ""
            return rest
        if len(self._rest) > MAX_TOKEN_CHARS:
            self.state = "bad"
            self._rest = ""
        return ""

    def _numbers(self, text: str, at: int) -> int:
        """Take a run of numbers up to, not including, the comma or bracket behind it."""
        match = _NUMBERS.match(text, at)
        if match is None:
            return at
        end = match.end()
        if text[end:end + 1] != "]":
            end = text.rfind(",", at, end)
            if end <= at:
                return at
        try:
            values = [float(value) for value in text[at:end].split(",")]
        except ValueError:
            # A separator stands first, or it is no number after all: one by one, then.
            return at
        self._events.numbers(self._path, values)
        self._path[-1] = t.cast(int, self._path[-1]) + len(values) - 1
        return end

    def _mark(self, mark: str) -> None:
        if mark in "{[":
            if len(self._kinds) >= MAX_DEPTH or (self._kinds and self._kinds[-1] == "{" and self._key is None):
                self.state = "bad"
                return
            self._enter()
            self._kinds.append(mark)
            self._path.append(0 if mark == "[" else "")
        elif mark in "}]":
            self._close(mark)
        elif mark == "," and self._kinds:
            self._key = None
            if self._kinds[-1] == "[":
                self._path[-1] = t.cast(int, self._path[-1]) + 1
        elif not self._kinds or self._kinds[-1] != "{":
            self.state = "bad"

    def _enter(self) -> None:
        if self._kinds and self._kinds[-1] == "{":
            self._path[-1] = self._key or ""
            self._key = None

    def _close(self, mark: str) -> None:
        if not self._kinds or (self._kinds[-1] == "{") != (mark == "}"):
            self.state = "bad"
            return
        self._kinds.pop()
        self._path.pop()
        self._key = None
        if not self._kinds:
            self.state = "done"
        self._events.closed(self._path)

    def _string(self, raw: str) -> None:
        if self._kinds and self._kinds[-1] == "{" and self._key is None:
            self._key = _unescape(raw)
        else:
            self._value(_unescape(raw))

    def _value(self, value: Scalar) -> None:
        if not self._kinds or (self._kinds[-1] == "{" and self._key is None):
            self.state = "bad"
            return
        self._enter()
        self._events.scalar(self._path, value)


def _unescape(raw: str) -> str:
    if "\\" not in raw:
        return raw
    return _ESCAPE.sub(lambda match: _character(match[1]), raw)


def _character(escape: str) -> str:
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _ESCAPED.get(escape, escape)


def _literal(text: str) -> Scalar:
    """A number, ``inf``, ``-nan``; true, false and null as they are written by others."""
    if text == "null":
        return None
    try:
        return float(text[:64])
    except ValueError:
        return text[:64]
