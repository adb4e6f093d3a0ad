# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What the rows add up to, in constant memory: peak, mean, order of sizes, consistency, shape.

Rules: facts nccl-gate 1.7 (formulas) and 1.8 rules 7 and 8.
"""
from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from .model import Cell, Result, Row
from .table import TYPE_BYTES

MAX_ROWS = 2048
_MAX_KINDS = 64
_MAX_SIZES = 4096
_MAX_DIPS = 256
# Bandwidth may not fall by more than this as the size grows, or from one cycle to the next (1.8 rule 8).
DIP_FRACTION = 0.90
# Below this, latency decides and swings of a factor are normal (sample: 80 to 2200 us on a sound cluster).
_SMALL_BYTES = 1 << 20
# Sizes are cut to multiples of 16 bytes per rank (1.2), so small ones do not show the step they were asked with.
_TRIM_BYTES = 16
# Printed with two decimals down to 0.01; with six digits at most; above 1e6 with two digits ("1.3e+07").
_HALF_DIGIT = 0.006
_COARSE = 1e6


def _half_digit(value: float) -> float:
    """How far a printed bandwidth may be from the true one: six columns (src/util.cu getFloatStr)."""
    if value < 1e3:
        return _HALF_DIGIT
    if value < 1e4:
        return 0.06
    return 0.6 if value < _COARSE else 0.06 * value


@dataclass
class Sweep:
    """The sizes between two restarts (cycles, data types, operations)."""

    first: int
    last: int
    first_key: tuple[str, str]
    ratio: float = 0.0
    difference: int = 0
    best: float = 0.0
    last_best: float = 0.0


class RowSummary:
    """Takes every row once; the result keeps the first ``MAX_ROWS`` of them."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self.sweep: Sweep | None = None
        self.gaps = 0
        self.short_sweeps = 0
        self.late_sweeps = 0
        self.inconsistent: str = ""
        self.infinite = False
        self.factor_low, self.factor_high = -math.inf, math.inf
        self.size_per_count = 0.0
        self.dips: list[tuple[int, float, float]] = []
        self._best_worst: dict[tuple[int, str, str], tuple[float, float]] = {}
        self.checked = [0, 0]
        self.unchecked = [0, 0]
        self.roots = False
        self.sum, self.cells = 0.0, 0

    def add(self, row: Row) -> None:
        result = self._result
        result.row_count += 1
        if len(result.rows) < MAX_ROWS:
            result.rows.append(row)
        else:
            result.rows_dropped += 1
        best = 0.0
        for place, cell in enumerate((row.out_of_place, row.in_place)):
            if cell is not None:
                best = max(best, self._cell(row, place, cell))
        self._extremes(row, best)
        self._kinds(row)
        self._order(row, best)

    def _cell(self, row: Row, place: int, cell: Cell) -> float:
        result = self._result
        if cell.wrong is None:
            self.unchecked[place] += 1
        else:
            self.checked[place] += 1
            if cell.wrong != 0:
                result.wrong_cells += 1
                result.wrong_largest = max(result.wrong_largest or 0.0, cell.wrong)
        time, algbw, busbw = cell.time_us, cell.algbw_gbps, cell.busbw_gbps
        # Three finite numbers that are not negative; nan fails every comparison.
        if not (0.0 <= time < math.inf and 0.0 <= algbw < math.inf and 0.0 <= busbw < math.inf):
            self.infinite = True
            return 0.0
        self.sum += busbw
        self.cells += 1
        self._figures(row, time, algbw, busbw)
        return busbw

    def _figures(self, row: Row, time: float, algbw: float, busbw: float) -> None:
        """algbw = size / time, and one and the same busbw / algbw in all rows (1.7)."""
        coarse = 0.06 if algbw >= _COARSE else 0.0
        if time >= 0.1 and algbw > 0.0:
            wanted = row.size_bytes / time / 1000.0
            slack = wanted * (0.003 + coarse + _HALF_DIGIT / time) + _HALF_DIGIT
            if abs(algbw - wanted) > slack and not self.inconsistent:
                self.inconsistent = (f"size {row.size_bytes}: algbw {algbw:g} GB/s is not size / time "
                                     f"({wanted:.2f} GB/s)")
        if algbw > 0.05:
            half_bus, half_alg = _half_digit(busbw), _half_digit(algbw)
            low = (busbw - half_bus) / (algbw + half_alg) * (1 - 1e-6)
            high = (busbw + half_bus) / (algbw - half_alg) * (1 + 1e-6)
            self.factor_low, self.factor_high = max(self.factor_low, low), min(self.factor_high, high)

    def _extremes(self, row: Row, best: float) -> None:
        result, ran = self._result, self._result.ran
        if result.peak_busbw_gbps is None or best > result.peak_busbw_gbps:
            result.peak_busbw_gbps, result.peak_size_bytes = best, row.size_bytes
        if ran.max_bytes is None or row.size_bytes > ran.max_bytes:
            ran.max_bytes = row.size_bytes
            width = TYPE_BYTES.get(row.type, 0) * row.count
            self.size_per_count = row.size_bytes / width if width else 0.0
        if ran.min_bytes is None or row.size_bytes < ran.min_bytes:
            ran.min_bytes = row.size_bytes

    def _kinds(self, row: Row) -> None:
        ran = self._result.ran
        if row.type not in ran.types and len(ran.types) < _MAX_KINDS:
            ran.types.append(row.type)
        if row.redop not in ran.redops and len(ran.redops) < _MAX_KINDS:
            ran.redops.append(row.redop)
        if row.root is not None and row.root >= 0:
            self.roots = True

    def _order(self, row: Row, best: float) -> None:
        sweep, key = self.sweep, (row.type, row.redop)
        if sweep is not None and key == sweep.first_key and self._repeats(sweep, row.size_bytes):
            # Nothing to learn: the next size is measured against this one.
            sweep.last, sweep.ratio = row.size_bytes, 0.0
        elif sweep is None or row.size_bytes <= sweep.last or key != sweep.first_key:
            self._end_sweep()
            self._begin_sweep(row, best, key)
        else:
            self._next_size(sweep, row.size_bytes)
            self._shape(sweep, row.size_bytes, best)
            sweep.last = row.size_bytes
        if best > 0.0 and row.size_bytes >= _SMALL_BYTES:
            self._stability((row.size_bytes, *key), best)

    def _trim(self) -> int:
        return 2 * _TRIM_BYTES * (self._result.ran.ranks_listed or 64)

    def _repeats(self, sweep: Sweep, size: int) -> bool:
        """Small sizes come out equal, or as 0, when they are cut to what all ranks can share."""
        return sweep.last == 0 or (size == sweep.last and size < 64 * self._trim())

    def _begin_sweep(self, row: Row, best: float, key: tuple[str, str]) -> None:
        self._result.cycles += 1
        self.sweep = Sweep(row.size_bytes, row.size_bytes, key, 0.0, 0, best, best)
        asked = self._result.request.min_bytes
        if asked and row.size_bytes > asked * 1.01 + _TRIM_BYTES:
            self.late_sweeps += 1

    def _next_size(self, sweep: Sweep, size: int) -> None:
        ratio, difference, trim = size / sweep.last, size - sweep.last, self._trim()
        request = self._result.request
        if request.step and sweep.last >= 64 * trim:
            wanted = request.step * sweep.last if request.step_kind == "factor" else request.step + sweep.last
            self.gaps += size > wanted * 1.02 + trim
        if not sweep.ratio or sweep.last < 64 * trim:
            sweep.ratio, sweep.difference = ratio, difference
            return
        if ratio - sweep.ratio > 0.02 + trim / sweep.last * sweep.ratio and difference - sweep.difference > trim:
            self.gaps += 1
        else:
            sweep.ratio, sweep.difference = min(ratio, sweep.ratio), difference

    def _shape(self, sweep: Sweep, size: int, best: float) -> None:
        if size >= _SMALL_BYTES and best < DIP_FRACTION * sweep.best and len(self.dips) < _MAX_DIPS:
            self.dips.append((size, sweep.best, best))
        sweep.best, sweep.last_best = max(sweep.best, best), best

    def _stability(self, key: tuple[int, str, str], best: float) -> None:
        """Best and later worst of a size over the cycles: the first cycle may be slow, never the later ones."""
        known = self._best_worst.get(key)
        if known is not None:
            self._best_worst[key] = (max(known[0], best), min(known[1], best))
        elif len(self._best_worst) < _MAX_SIZES:
            self._best_worst[key] = (best, math.inf)

    def _end_sweep(self) -> None:
        sweep, request = self.sweep, self._result.request
        if sweep is None:
            return
        asked = request.reduced_max_bytes or request.max_bytes
        if not asked or sweep.last >= asked * 0.98 - self._trim():
            return
        # The sweep is whole if the next size of its own step would exceed what was asked for.
        step = sweep.difference if request.step_kind == "bytes" else sweep.last * (sweep.ratio - 1)
        if not sweep.ratio or sweep.last + step <= asked * 1.01:
            self.short_sweeps += 1

    def finish(self) -> None:
        self._end_sweep()
        self.sweep = None
        if self.cells:
            self._result.average_computed = self.sum / self.cells

    def factor(self) -> tuple[float, float] | None:
        """The interval in which busbw / algbw lies; None if the rows say nothing or contradict each other."""
        if not math.isfinite(self.factor_low) or self.factor_low > self.factor_high:
            return None
        return self.factor_low, self.factor_high

    def contradiction(self) -> bool:
        return self.factor_low > self.factor_high

    def falls(self) -> t.Iterator[str]:
        """Where the bandwidth fell near its peak: a link that flapped, a buffer that overflowed."""
        peak = self._result.peak_busbw_gbps or 0.0
        for size, before, after in self.dips:
            if before >= 0.8 * peak:
                yield f"busbw falls from {before:g} to {after:g} GB/s at size {size}"
        for (size, _kind, _redop), (best, worst) in self._best_worst.items():
            if best >= 0.8 * peak and worst < DIP_FRACTION * best:
                yield f"size {size} gave {worst:g} after {best:g} GB/s in the same run"
