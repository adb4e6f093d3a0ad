# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest

from plugins.module_utils._nccl.lines import NcclCutter, clean, strip_prefix


@pytest.mark.parametrize(("line", "rank", "rest"), [
    ("12: # size", 12, "# size"), ("0:", 0, ""), ("[3] # size", 3, "# size"), ("[3] NCCL x", None, "[3] NCCL x"),
    ("[1,15]<stderr>: x", 15, "x"), ("[prterun-gpu01-7@1,2]<stdout>: y", 2, "y"), ("worker-4: z", 4, "z"),
    ("gpu01: Test NCCL failure a.cu:1 'x'", None, "gpu01: Test NCCL failure a.cu:1 'x'"),
    ("2026-02-03T04:05:06Z [1,0]<stdout>: 4: deep", 4, "deep"), ("10.0.0.1:5", None, "10.0.0.1:5"),
])
def test_strip_prefix(line: str, rank: int | None, rest: str) -> None:
    assert strip_prefix(line) == (rank, rest)


def test_clean() -> None:
    assert clean("\x1b[1;31mred\x1b[0m\r\0 \x1b]0;title\x07end") == "red end"


@pytest.mark.parametrize(("line", "before", "host", "device", "level", "message"), [
    ("gpu01:1:2 [3] NCCL INFO text", "", "gpu01", 3, "INFO", "text"),
    ("gpu01:1:2 [3] init.cc:5 NCCL WARN text", "", "gpu01", 3, "WARN", "text"),
    ("[2026-02-03 04:05:06] gpu01:1:2 [3] init.cc:5 NCCL WARN t", "", "gpu01", 3, "WARN", "t"),
    ("  16 4 float sum -1gpu01:1:2 [0] NCCL INFO t", "  16 4 float sum -1", "gpu01", 0, "INFO", "t"),
    ("  1.5 2.0 3.0 0gpu01:1:2 [0] NCCL INFO t", "  1.5 2.0 3.0 0", "gpu01", 0, "INFO", "t"),
    ("  1.5 2.0 3.0 N/Agpu01:1:2 [0] NCCL INFO t", "  1.5 2.0 3.0 N/A", "gpu01", 0, "INFO", "t"),
    ("  1.5 2.0 3.0 0[2026-02-03 04:05:06] gpu01:1:2 [0] a.cc:1 NCCL WARN t", "  1.5 2.0 3.0 0", "gpu01", 0, "WARN",
     "t"),
    ("[8] gpu02:1:2 [-1] NCCL TRACE t", "", "gpu02", -1, "TRACE", "t"),
])
def test_cut(line: str, before: str, host: str, device: int, level: str, message: str) -> None:
    cut = NcclCutter().cut(line)
    assert cut is not None
    assert (cut[0].before, cut[0].host, cut[0].device, cut[1], cut[2]) == (before, host, device, level, message)


@pytest.mark.parametrize("line", ["NCCL version 2.29.3", "gpu01: Test NCCL failure", "x NCCL INFO y", "NCCL INFO ", ""])
def test_no_line_of_nccl(line: str) -> None:
    assert NcclCutter().cut(line) is None


def test_hostile_lines_take_no_time() -> None:
    start, cutter = time.monotonic(), NcclCutter()
    for piece in ("a", "[1,", "1:", " ", "\x1b]", "[0] "):
        line = piece * (65536 // len(piece))
        cutter.cut(line + " NCCL INFO x")
        strip_prefix(clean(line))
    assert time.monotonic() - start < 2
