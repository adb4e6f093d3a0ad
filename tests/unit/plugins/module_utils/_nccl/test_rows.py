# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._nccl.model import Cell, Result, Row
from plugins.module_utils._nccl.rows import MAX_ROWS, RowSummary

MIB = 1 << 20


def row(size: int, busbw: float = 100.0, kind: str = "float", wrong: float | None = 0.0) -> Row:
    algbw = busbw / 1.875
    time = size / algbw / 1e3 if algbw else 0.0
    return Row(size, size // 4, kind, "sum", -1, Cell(time, algbw, busbw, wrong), Cell(time, algbw, busbw, wrong))


def summary(rows: list[Row], low: int | None = None, high: int | None = None, step: int | None = None) -> RowSummary:
    result = Result()
    result.request.min_bytes, result.request.max_bytes, result.request.step = low, high, step
    result.request.step_kind = "factor" if step else ""
    adder = RowSummary(result)
    for entry in rows:
        adder.add(entry)
    adder.finish()
    return adder


def test_peak_mean_and_bound() -> None:
    result = Result()
    adder = RowSummary(result)
    for number in range(MAX_ROWS + 10):
        adder.add(row(MIB, 50.0 + number % 2))
    adder.finish()
    assert (result.row_count, len(result.rows), result.rows_dropped) == (MAX_ROWS + 10, MAX_ROWS, 10)
    assert result.peak_busbw_gbps == 51.0
    assert result.average_computed == pytest.approx(50.5)


def test_factor_gives_one_interval() -> None:
    interval = summary([row(MIB << shift) for shift in range(5)]).factor()
    assert interval is not None and interval[0] <= 1.875 <= interval[1] and interval[1] - interval[0] < 0.001
    assert summary([]).factor() is None


def test_sizes_missing() -> None:
    sizes = [MIB << shift for shift in range(8)]
    whole = summary([row(size) for size in sizes], sizes[0], sizes[-1], 2)
    assert (whole.gaps, whole.short_sweeps, whole.late_sweeps) == (0, 0, 0)
    assert summary([row(size) for size in sizes if size != sizes[3]], sizes[0], sizes[-1], 2).gaps
    assert summary([row(size) for size in sizes[:-1]], sizes[0], sizes[-1], 2).short_sweeps == 1
    assert summary([row(size) for size in sizes[1:]], sizes[0], sizes[-1], 2).late_sweeps == 1


def test_steps_in_bytes() -> None:
    rows = [row(MIB * number) for number in range(1, 20)]
    assert summary(rows).gaps == 0
    assert summary(rows[:9] + rows[10:]).gaps == 1


def test_sizes_cut_to_what_72_ranks_can_share() -> None:
    """all_gather on 72 ranks: 16 bytes a rank, so the small sizes repeat and the step comes slowly."""
    sizes = [(1 << shift) // 1152 * 1152 for shift in range(3, 30)]
    seen = summary([row(size, 0.0 if not size else 10.0) for size in sizes], 8, 1 << 29, 2)
    assert (seen.gaps, seen.short_sweeps, seen.late_sweeps) == (0, 0, 0)


def test_new_sweeps() -> None:
    rows = [row(size, kind=kind) for kind in ("float", "half") for size in (MIB, 2 * MIB, 4 * MIB)]
    adder = summary(rows * 2)
    assert (adder.gaps, adder._result.cycles) == (0, 4)


def test_falls() -> None:
    assert list(summary([row(MIB, 50), row(2 * MIB, 100), row(4 * MIB, 60), row(8 * MIB, 100)]).falls())
    assert not list(summary([row(MIB, 50), row(2 * MIB, 100), row(4 * MIB, 95)]).falls())
    assert not list(summary([row(4096, 50), row(8192, 10), row(MIB, 50)]).falls())
    # A dip far below the peak is a change of protocol, not a fault.
    assert not list(summary([row(MIB, 20), row(2 * MIB, 15), row(4 * MIB, 100)]).falls())


def test_contradictions() -> None:
    odd = row(MIB)
    assert odd.in_place is not None
    odd.in_place.busbw_gbps = 50.0
    assert summary([odd, row(2 * MIB)]).contradiction()
    late = row(MIB)
    assert late.out_of_place is not None
    late.out_of_place.time_us *= 2
    assert summary([late]).inconsistent
    assert summary([row(MIB, float("nan"))]).infinite
    assert summary([row(MIB, float("inf"))]).infinite
