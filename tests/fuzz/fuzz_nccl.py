#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fuzz the parser of nccl-tests logs and the judge: they never raise, and never pass what is not whole.

    PYTHONPATH=. python tests/fuzz/fuzz_nccl.py --count 1000000 [--engine hypothesis|mutate|atheris] [--seed N]

``hypothesis`` draws the mutations by strategy (slow, finds corners, shrinks); ``mutate`` draws them from a
seeded generator (fast, for long runs); ``atheris`` follows coverage, where it is installed.
"""
from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
import typing as t
from pathlib import Path

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.model import STATE_RANK, Expected, Limit, Result, Verdict
from plugins.module_utils._nccl.parse import LogParser, parse_text

FIXTURES = Path(__file__).parent.parent / "unit/plugins/module_utils/_nccl/fixtures"
# What means something to the parser, so that random text is not all noise.
WORDS = (
    b"NCCL INFO ", b"NCCL WARN ", b"node:1:2 [0] NCCL INFO ", b"# Rank 0 Pid 1 on a device 0 [0x1] x", b"N/A", b"nan",
    b"inf",
    b"-inf", b"1e999", b"99999999999999999999999", b"-1", b"0", b"1_0", b"\xd9\xa1", b"float", b"sum", b"\r\n",
    b"\x1b[31m",
    b"[1,0]<stdout>:", b"12: ", b"# Out of bounds values : 0 OK\n", b"# Avg bus bandwidth : nan\n", b"{\"version\":3,",
    b"{", b"}",
    b"[", b"]", b"\"results\":[", b"null", b"Got completion from peer 192.0.2.1<1> with status=12 hca mlx5_0",
    b"Test timeout (",
    b"SIMULATED", b"\0", b"\xff\xfe", b"nThread 1 nGpus 0 minBytes 0 maxBytes 0 step: 0(bytes)",
    b"time algbw busbw #wrong ",
    b"# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n", b" -> Algo RING proto LL",
    b" via NET/IB/0",
)


def seeds() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FIXTURES.iterdir())]


def check(data: bytes, cut: int = 0) -> Verdict:
    """One input: parse in one piece and in two, judge, serialise, and hold against the invariants."""
    result = parse_text(data)
    verdict = judge(result)
    text = json.dumps([result.to_dict(), verdict.to_dict()], allow_nan=False)
    if verdict.state not in STATE_RANK or not verdict.reason or len(text) > 4_000_000:
        raise AssertionError(f"{verdict.state} {verdict.reason!r} {len(text)}")
    if verdict.state == "PASS":
        check_pass(result)
    limited = judge(result, Limit(100.0, upper_bound=1000.0), Expected(ranks=16, min_busbw_gbps=50.0))
    if STATE_RANK[limited.state] < STATE_RANK[verdict.state]:
        raise AssertionError(f"a limit made {verdict.state} {limited.state}")
    if cut:
        parser = LogParser()
        parser.feed(data[:cut])
        parser.feed(data[cut:])
        other = judge(parser.close())
        if other.state != verdict.state:
            raise AssertionError(f"in two pieces {other.state}, in one {verdict.state}")
    return verdict


def check_pass(result: Result) -> None:
    """What every pass must show, whatever was fed in."""
    peak = result.peak_busbw_gbps
    good = (
        result.row_count >= 1 and result.runs == 1 and not result.broken_rows and not result.simulated
        and result.verification == "verified" and not result.wrong_cells and not result.out_of_bounds_failed
        and result.out_of_bounds and result.average_printed and peak is not None and math.isfinite(peak) and peak > 0
        and (result.ran.ranks is None or result.ran.ranks > 1)
    )
    if not good:
        raise AssertionError(f"a pass without its reasons: {result.to_dict()}")


def mutate(data: bytes, draw: random.Random, others: t.Sequence[bytes]) -> bytes:
    """A few edits of the kinds that logs meet, and of kinds that they should never meet."""
    for _edit in range(draw.randint(1, 4)):
        kind, at = draw.randrange(9), draw.randrange(len(data) + 1)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + draw.choice(WORDS) + data[at:]
        elif kind == 2:
            data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1:]
        elif kind == 3:
            data = data[:at] + data[at + draw.randint(1, 80):]
        elif kind == 4:
            other = draw.choice(others)
            data = data[:at] + other[draw.randrange(len(other)):]
        else:
            data = _edit_lines(data, draw, kind)
    return data[:20_000]


def _edit_lines(data: bytes, draw: random.Random, kind: int) -> bytes:
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    if kind == 5:
        del lines[at]
    elif kind == 6:
        lines.insert(at, draw.choice(lines))
    elif kind == 7:
        tokens = lines[at].split(b" ")
        tokens[draw.randrange(len(tokens))] = draw.choice(WORDS)
        lines[at] = b" ".join(tokens)
    else:
        prefix = draw.choice((b"0: ", b"[1,0]<stdout>: ", b"[0] ", b"2026-02-03T04:05:06.7Z ", b"worker-1: "))
        lines = [prefix + line for line in lines]
    return b"\n".join(lines)


def run_mutate(count: int, seed: int) -> dict[str, int]:
    draw, pool = random.Random(seed), seeds()
    states: dict[str, int] = {}
    start = time.monotonic()
    for number in range(count):
        data = mutate(draw.choice(pool), draw, pool)
        try:
            state = check(data, draw.randrange(len(data) + 1) if number % 8 == 0 else 0).state
        except Exception:
            Path("fuzz_nccl_failure.bin").write_bytes(data)
            print(f"input {number} of seed {seed} is kept in fuzz_nccl_failure.bin", file=sys.stderr)
            raise
        states[state] = states.get(state, 0) + 1
        if number % 100_000 == 99_999:
            print(f"{number + 1} inputs, {time.monotonic() - start:.0f} s", flush=True)
    return states


def run_hypothesis(count: int, seed: int) -> dict[str, int]:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    pool, states = seeds(), dict[str, int]()
    noise = st.one_of(st.sampled_from(WORDS), st.binary(max_size=60),
        st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
    edited = st.builds(lambda draw, base: mutate(base, draw, pool), st.randoms(use_true_random=False),
        st.sampled_from(pool))
    free = st.lists(noise, max_size=40).map(b"".join)

    @seeded(seed)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(edited, edited, free), st.integers(0, 4000))
    def one(data: bytes, cut: int) -> None:
        state = check(data, cut).state
        states[state] = states.get(state, 0) + 1

    one()
    return states


def run_atheris(count: int, seed: int) -> dict[str, int]:
    try:
        import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        sys.exit("atheris is not installed; use --engine mutate or hypothesis")
    atheris.instrument_all()
    # libFuzzer writes what it finds into the first folder, and only reads the others.
    found = tempfile.mkdtemp(prefix="fuzz-nccl-")
    print(f"atheris: inputs that add coverage, and crashes, go to {found}", flush=True)
    atheris.Setup([sys.argv[0], f"-runs={count}", f"-seed={seed}", f"-artifact_prefix={found}/crash-", found,
                   str(FIXTURES)], lambda data: None if check(data) else None)
    atheris.Fuzz()
    return {}


Engine = t.Callable[[int, int], dict[str, int]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the parser of nccl-tests logs")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["hypothesis", "mutate", "atheris"], default="hypothesis")
    options = parser.parse_args()
    start = time.monotonic()
    engine = {"hypothesis": run_hypothesis, "mutate": run_mutate, "atheris": run_atheris}[options.engine]
    states = engine(options.count, options.seed)
    print(f"{options.engine}: {sum(states.values())} inputs in {time.monotonic() - start:.0f} s, no unhandled error; "
          + ", ".join(f"{state} {count}" for state, count in sorted(states.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
