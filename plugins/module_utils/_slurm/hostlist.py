# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Slurm's host lists: ``gb1-[01-03,07]`` to names and back. Pure, and linear in the number of names.

A range counts with the width of its first number, so [08-11] is 08, 09, 10, 11 and [8-11] is 8, 9, 10, 11; [1,02] is 1
and 02. Several brackets in a name are combined with the last one counting first, as `scontrol show hostnames` does.
"""
from __future__ import annotations

import itertools
import re
import typing as t

# Far above any cluster; a typing error ([1-99999999]) must not eat the controller's memory.
MAX_NAMES = 200_000
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# Device files are listed in the same way (File= of gres.conf).
FILE = re.compile(r"/[A-Za-z0-9_./-]+")
# The number at the end of a name; a longer one is no counter.
_COUNTED = re.compile(r"(.*?)([0-9]{1,9})")


class HostlistError(ValueError):
    """A text that is no host list; the message says what is wrong with which part."""


def _split(text: str) -> t.Iterator[str]:
    """The parts between commas that are outside of brackets."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
        if depth not in (0, 1):
            raise HostlistError(f"{text!r}: got brackets that do not match at character {place + 1}")
    if depth:
        raise HostlistError(f"{text!r}: got a bracket that is not closed")
    yield text[start:]


def _numbers(inside: str, part: str) -> t.Iterator[str]:
    for one in inside.split(","):
        found = _RANGE.fullmatch(one.strip())
        if not found:
            raise HostlistError(f"{part!r}: got {one!r} in brackets, wanted numbers such as 1-4,07")
        first, last = found.group(1), found.group(2) or found.group(1)
        if int(last) < int(first):
            raise HostlistError(f"{part!r}: got the range {one}, wanted its smaller number first")
        if int(last) - int(first) >= MAX_NAMES:
            raise HostlistError(f"{part!r}: got more than {MAX_NAMES} names")
        yield from (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))


def _names(part: str, pattern: re.Pattern[str]) -> t.Iterator[str]:
    """Of one part; its pieces are texts and brackets by turns."""
    pieces = re.split(r"\[([^\]]*)\]", part)
    choices: list[list[str]] = [[piece] if index % 2 == 0 else list(_numbers(piece, part))
                                for index, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MAX_NAMES:
        raise HostlistError(f"{part!r}: got more than {MAX_NAMES} names")
    for combined in itertools.product(*choices):
        name = "".join(combined)
        if not pattern.fullmatch(name):
            raise HostlistError(f"{part!r}: got the name {name!r}, wanted letters, digits, dot, dash and underscore")
        yield name


def expand(text: str, pattern: re.Pattern[str] = _NAME) -> list[str]:
    """The names in the order of the list; one that is there twice comes twice."""
    found: list[str] = []
    if not text.strip():
        return found
    for part in _split(text):
        found += _names(part.strip(), pattern)
        if len(found) > MAX_NAMES:
            raise HostlistError(f"{text[:80]!r}: got more than {MAX_NAMES} names")
    return found


class _Run(t.NamedTuple):
    """Numbers that follow each other behind one prefix; ``last`` as it is written."""

    prefix: str
    first: str
    last: str


def _parts(name: str) -> tuple[str, str]:
    found = _COUNTED.fullmatch(name)
    return (found.group(1), found.group(2)) if found else (name, "")


def _runs(names: t.Iterable[str], pattern: re.Pattern[str]) -> t.Iterator[_Run]:
    run: _Run | None = None
    for name in names:
        if not isinstance(name, str) or not pattern.fullmatch(name):
            raise HostlistError(f"got the name {name!r}, wanted letters, digits, dot, dash and underscore")
        prefix, digits = _parts(name)
        if run and digits and run.first and prefix == run.prefix and (
                f"{int(run.last) + 1:0{len(run.first)}d}" == digits):
            run = run._replace(last=digits)
            continue
        if run:
            yield run
        run = _Run(prefix, digits, digits)
    if run:
        yield run


def natural(name: str) -> tuple[t.Any, ...]:
    """A key that sorts n2 before n10."""
    return tuple((1, int(piece), piece) if piece.isdigit() else (0, 0, piece) for piece in re.split(r"([0-9]+)", name))


def compress(names: t.Iterable[str], sort: bool = False, pattern: re.Pattern[str] = _NAME) -> str:
    """One host list of the names in their order: only neighbours are joined, so that expand() gives them back.

    With ``sort`` they are sorted first, numbers by value, and each is named once.
    """
    ordered: t.Iterable[str] = sorted(set(names), key=natural) if sort else names
    texts = []
    for prefix, group in itertools.groupby(_runs(ordered, pattern), key=lambda run: (run.prefix, bool(run.first))):
        runs = list(group)
        ranges = [run.first if run.first == run.last else f"{run.first}-{run.last}" for run in runs]
        if not prefix[1]:
            texts += [prefix[0]] * len(runs)
        elif len(ranges) == 1 and runs[0].first == runs[0].last:
            texts.append(prefix[0] + ranges[0])
        else:
            texts.append(f"{prefix[0]}[{','.join(ranges)}]")
    return ",".join(texts)
