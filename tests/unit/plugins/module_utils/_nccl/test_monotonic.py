# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Losing a part of a log, or what launchers do to it, never makes its verdict better."""
from __future__ import annotations

import random
import typing as t

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.model import STATE_RANK, Limit
from plugins.module_utils._nccl.parse import parse_text

from . import failures
from .rendering import FIXTURES
from .test_conformance import SAMPLES, limit_of, samples

# A lone line can be all the evidence there is; a real log has such lines from every rank.
LONE_EVIDENCE = ("flap",)
LOGS: dict[str, tuple[bytes, Limit | None]] = {
    **{path.name: (path.read_bytes(), None) for path in sorted(FIXTURES.iterdir())},
    **{f"limited {path.name}": (path.read_bytes(), Limit(210.0)) for path in sorted(FIXTURES.glob("v2.1*"))},
    **{name: (text.encode(), None) for name, (text, *_rest) in failures.LOGS.items() if name not in LONE_EVIDENCE},
    **{sample.name: ((SAMPLES / sample.name).read_bytes(), limit_of(sample)) for sample in samples()},
}
NAMES = sorted(LOGS)


def rank(data: bytes, limit: Limit | None) -> int:
    return STATE_RANK[judge(parse_text(data), limit).state]


RANKS = {name: rank(*LOGS[name]) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_dropping_any_line(name: str) -> None:
    data, limit = LOGS[name]
    lines = data.split(b"\n")
    for at in range(len(lines)):
        assert rank(b"\n".join(lines[:at] + lines[at + 1:]), limit) >= RANKS[name], lines[at]


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(NAMES), st.floats(0, 1), st.booleans())
@example("v2.19.6-single-process.txt", 0.999, True)
def test_cut_at_any_byte(name: str, part: float, tail: bool) -> None:
    data, limit = LOGS[name]
    at = int(part * len(data))
    assert rank(data[:at] if tail else data[at:], limit) >= RANKS[name]


def widened(line: bytes, draw: random.Random) -> bytes:
    """Other column widths: only what stands between the words changes."""
    return b" " * draw.randint(0, 3) + (b" " * draw.randint(1, 6)).join(line.split()) if b" float " in line else line


def prefixed(line: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"0: ", b"[1,0]<stdout>: ", b"[1,0]<stdout>:", b"[0] ", b"2026-02-03T04:05:06.789Z ")) + line


def interleaved(line: bytes, draw: random.Random) -> bytes:
    info = b"gpu09:1:2 [3] NCCL INFO Channel 01/0 : 3[3] -> 4[4] via P2P/CUMEM"
    return draw.choice((line, info + b"\n" + line, b"[7] " + info + b"\n" + line, line + b"\r"))


Change = t.Callable[[bytes, random.Random], bytes]


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([name for name in NAMES if "json" not in name]), st.randoms(use_true_random=False),
       st.sets(st.sampled_from((widened, prefixed, interleaved)), min_size=1))
def test_generated_variants(name: str, draw: random.Random, changes: set[Change]) -> None:
    data, limit = LOGS[name]
    lines = data.split(b"\n")
    for change in (widened, interleaved, prefixed):
        if change in changes:
            lines = [change(line, draw) for line in b"\n".join(lines).split(b"\n")]
    assert rank(b"\n".join(lines), limit) >= RANKS[name]
