# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import math
import random

import pytest

from plugins.module_utils._nccl.json_scan import (
    MAX_DEPTH,
    JsonScanner,
    Path,
    Scalar,
)


class Recorder:
    """Builds what the events say, to be compared with the standard reader."""

    def __init__(self) -> None:
        self.values: list[tuple[tuple[str | int, ...], Scalar]] = []
        self.closings = 0

    def scalar(self, path: Path, value: Scalar) -> None:
        self.values.append((tuple(path), value))

    def numbers(self, path: Path, values: list[float]) -> None:
        for offset, value in enumerate(values):
            self.values.append(((*path[:-1], int(path[-1]) + offset), value))

    def closed(self, path: Path) -> None:
        self.closings += 1


def scan(text: str, size: int = 0) -> tuple[Recorder, str]:
    recorder = Recorder()
    scanner = JsonScanner(recorder)
    for at in range(0, len(text), size or len(text) or 1):
        scanner.feed(text[at:at + (size or len(text))])
    return recorder, scanner.state


def leaves(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], object]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return [(path, value)]


DOCUMENT = {"a": [1, 2.5, -3e-7, None, "x\"y\\/\n\u00e9"], "b": {"c": {}, "d": [], "e": [[1, 2], [3]]}, "": "",
    "n": list(range(200))}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 17, 64])
@pytest.mark.parametrize("indent", [None, 1])
def test_as_the_standard_reader(size: int, indent: int | None) -> None:
    recorder, state = scan(json.dumps(DOCUMENT, indent=indent), size)
    assert state == "done"
    assert recorder.values == leaves(DOCUMENT)


def test_what_the_standard_refuses() -> None:
    recorder, state = scan('{"a":inf,"b":-inf,"c":nan,"d":true}')
    assert state == "done"
    values = dict(recorder.values)
    assert values[("a",)] == math.inf and values[("b",)] == -math.inf and values[("d",)] == "true"
    assert math.isnan(float(str(values[("c",)])))


@pytest.mark.parametrize("text", ["]", "{]", "{1:2}", ":", "[" * (MAX_DEPTH + 2), "{{", "5 "])
def test_damage(text: str) -> None:
    assert scan(text)[1] in ("bad", "open")


def test_any_cut_is_open() -> None:
    text = json.dumps(DOCUMENT)
    assert {scan(text[:at])[1] for at in range(1, len(text))} == {"open"}


def test_rest_is_handed_back() -> None:
    scanner = JsonScanner(Recorder())
    assert scanner.feed('{"a":1}\nmore') == "\nmore" and scanner.state == "done"


def test_tokens_are_bounded() -> None:
    scanner = JsonScanner(Recorder())
    for _piece in range(40):
        scanner.feed('{"a":"' if scanner.state == "open" and not _piece else "x" * 65536)
    assert scanner.state == "bad"


def test_random_noise_never_raises() -> None:
    draw = random.Random(7)
    for _round in range(2000):
        scan("".join(draw.choice('{}[]:,"\\ \n1-.enulx') for _count in range(40)), draw.randrange(1, 9))
