#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed and memory of the parser of nccl-tests logs on a large synthetic log.

    PYTHONPATH=. python benchmarks/bench_nccl_parse.py [--megabytes 100] [--kind info|rows|mixed|json]

Prints MB/s and the peak resident size; exit code 1 below ``--floor`` MB/s or if memory grew with the log
by more than ``--growth`` MiB.
"""
from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
import typing as t

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.parse import parse_file
from tests.unit.plugins.module_utils._nccl import rendering

_INFO = (
    "{host}:{pid}:{tid} [{dev}] NCCL INFO Channel {chan:02d}/0 : {rank}[{dev}] -> {next}[{dev}] [send] via "
    "NET/IB/{dev}/GDRDMA",
    "{host}:{pid}:{tid} [{dev}] NCCL INFO Channel {chan:02d}/0 : {rank}[{dev}] -> {next}[{dev}] via P2P/CUMEM/read",
    "{host}:{pid}:{tid} [{dev}] NCCL INFO Trees [0] {next}/-1/-1->{rank}->{rank} [1] {next}/-1/-1->{rank}->{rank}",
    "{host}:{pid}:{tid} [{dev}] NCCL INFO AllReduce: {size} Bytes -> Algo RING proto SIMPLE "
    "channel{{Lo..Hi}}={{0..15}}",
    "{host}:{pid}:{tid} [{dev}] NCCL INFO AllReduce: opCount {chan:x} sendbuff 0x7f21c4000000 recvbuff 0x7f2190000000 "
    "count {size} datatype 7 op 0 root 0 comm 0x55d0c8a3f2b0 [nranks=64] stream 0x55d0c7b5e3a0",
)
SPEC = rendering.Spec("2.19.6", nodes=8)


def info_lines() -> t.Iterator[str]:
    """What 64 ranks write under NCCL_DEBUG=INFO."""
    number = 0
    while True:
        rank = number % 64
        yield _INFO[number % len(_INFO)].format(
            host=f"gpu{rank // 8 + 1:02d}", pid=31000 + rank, tid=31500 + rank * 3 + number % 3, dev=rank % 8,
            rank=rank, chan=number % 16, next=(rank + 8) % 64, size=1 << (20 + number % 13))
        number += 1


def row_lines() -> t.Iterator[str]:
    rows = ["".join(rendering.row(SPEC, size, index)) for index, size in enumerate(SPEC.sweep())]
    while True:
        yield from rows


def mixed_lines() -> t.Iterator[str]:
    """One row after every 19 lines of NCCL."""
    info, rows = info_lines(), row_lines()
    while True:
        for _count in range(19):
            yield next(info)
        yield next(rows)


def write_text(stream: t.BinaryIO, lines: t.Iterator[str], size: int) -> None:
    stream.write(("\n".join([*rendering.head(SPEC), *rendering.columns(SPEC)]) + "\n").encode())
    written = 0
    while written < size:
        block = ("\n".join(next(lines) for _count in range(1000)) + "\n").encode()
        written += stream.write(block)
    stream.write(("\n".join(rendering.foot(SPEC, rendering.mean(SPEC))) + "\n").encode())


def write_json(stream: t.BinaryIO, size: int) -> None:
    """One report whose per-iteration lists make it long."""
    document = json.loads(rendering.render_json(rendering.Spec("2.19.6", per_iteration=True, nodes=8)))
    entry = document["results"][0]
    for place in ("out_of_place", "in_place"):
        entry[f"{place}_per_iter"]["per_process_max_times_us"] = [[123.456789] * 1000] * 64
    text = json.dumps(document, separators=(",", ":"))
    head, _mark, tail = text.partition(json.dumps(entry, separators=(",", ":")))
    block = json.dumps(entry, separators=(",", ":")).encode()
    stream.write(head.encode())
    for _count in range(max(size // len(block), 1)):
        stream.write(block + b",")
    stream.write(block + tail.encode())


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(kind: str, size: int) -> tuple[float, float, str]:
    """(seconds, bytes, state) of one parse of a log of this size."""
    lines = {"info": info_lines, "rows": row_lines, "mixed": mixed_lines}
    with tempfile.TemporaryFile() as stream:
        if kind == "json":
            write_json(stream, size)
        else:
            write_text(stream, lines[kind](), size)
        total = stream.tell()
        stream.seek(0)
        start = time.process_time()
        result = parse_file(stream)
        seconds = time.process_time() - start
    return seconds, total, judge(result).state


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed and memory of the parser of nccl-tests logs")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--kind", choices=["info", "rows", "mixed", "json"], action="append")
    parser.add_argument("--floor", type=float, default=20.0, help="MB/s")
    parser.add_argument("--growth", type=float, default=16.0, help="MiB between a tenth of the log and all of it")
    options = parser.parse_args()
    code = 0
    for kind in options.kind or ["mixed", "info", "rows", "json"]:
        run(kind, options.megabytes * 100_000)
        before = peak_mib()
        seconds, total, state = run(kind, options.megabytes * 1_000_000)
        speed, after = total / 1e6 / seconds, peak_mib()
        # The floor is set for logs as they are; a log of rows or JSON alone is told, not judged.
        failed = (kind in ("mixed", "info") and speed < options.floor) or after - before > options.growth
        code |= failed
        print(f"{kind:6} {total / 1e6:6.0f} MB {seconds:6.2f} s CPU {speed:6.1f} MB/s; peak RSS {before:.1f} MiB after "
              f"a tenth, {after:.1f} MiB after all; {state}{' FAILED' if failed else ''}")
    return code


if __name__ == "__main__":
    sys.exit(main())
