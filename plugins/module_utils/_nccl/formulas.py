# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""busbw = algbw x factor, and the way back: ranks and collective from the figures (facts nccl-gate 1.7)."""
from __future__ import annotations

import math
import typing as t

if t.TYPE_CHECKING:
    from .rows import RowSummary

_SHARED = frozenset({"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"})
_WHOLE = frozenset({"broadcast", "reduce", "sendrecv", "hypercube"})
# An interval of busbw / algbw that is wider than this says nothing about the number of ranks.
_WIDE = 0.05


def factor_of(collective: str, ranks: int) -> float | None:
    """busbw / algbw for a number of ranks; None for an unknown collective."""
    if ranks < 1:
        return None
    if collective == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if collective in _SHARED:
        return (ranks - 1) / ranks
    return 1.0 if collective in _WHOLE else None


def listed_ranks_fit(rows: RowSummary, collective: str, ranks: int) -> bool:
    """False only if the figures contradict this number of ranks."""
    interval, factor = rows.factor(), factor_of(collective, ranks)
    if interval is None or factor is None or collective == "alltoallv":
        return True
    return interval[0] <= factor <= interval[1]


def infer_ranks(rows: RowSummary, collective: str) -> int | None:
    """The one number of ranks that the figures allow, if it is one."""
    interval = rows.factor()
    if interval is None or interval[1] - interval[0] > _WIDE:
        return None
    low, high = interval
    if low <= 0.0 <= high:
        return 1
    if collective in _SHARED and rows.size_per_count >= 1.5:
        # The count column is per rank, the size is the total: their ratio is the number of ranks.
        return round(rows.size_per_count)
    whole = 2.0 if collective == "all_reduce" else 1.0
    if collective in _WHOLE or (collective != "all_reduce" and collective not in _SHARED) or high >= whole:
        return None
    first, last = math.ceil(whole / (whole - low) - 1e-9), math.floor(whole / (whole - high) + 1e-9)
    return first if first == last else None


def infer_collective(rows: RowSummary, redops: list[str], ranks: int) -> str:
    """Name the collective of a log that does not say it; "" where two would look the same."""
    interval = rows.factor()
    if interval is None:
        return ""
    low, high = interval
    reduces = any(redop not in ("", "none") for redop in redops)
    if rows.size_per_count >= 1.5:
        return _per_rank_counts(rows, reduces, low, high)
    if rows.unchecked[1] and not rows.checked[1] and rows.checked[0]:
        return "sendrecv"
    if not reduces:
        return "broadcast" if rows.roots and low <= 1.0 <= high else ""
    if rows.roots:
        return "reduce" if low <= 1.0 <= high else ""
    wanted = factor_of("all_reduce", ranks)
    if (high > 1.05) or (wanted is not None and low <= wanted <= high and ranks == 2):
        return "all_reduce"
    return ""


def _per_rank_counts(rows: RowSummary, reduces: bool, low: float, high: float) -> str:
    """Collectives whose size column is the total over the ranks."""
    shared = factor_of("all_gather", round(rows.size_per_count)) or 0.0
    if low <= 1.0 <= high and not low <= shared <= high:
        return "hypercube"
    if reduces:
        return "reduce_scatter"
    if rows.roots:
        return ""
    if rows.checked[0] and rows.unchecked[1] and not rows.checked[1]:
        return "alltoall"
    return "all_gather"
