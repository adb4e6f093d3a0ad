# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._nccl.formulas import (
    factor_of,
    infer_ranks,
    listed_ranks_fit,
)
from plugins.module_utils._nccl.parse import parse_text

from . import rendering
from .rendering import Spec
from .test_rows import MIB, row, summary


@pytest.mark.parametrize(("collective", "ranks", "factor"), [
    ("all_reduce", 8, 1.75), ("all_gather", 4, 0.75), ("alltoall", 72, 71 / 72), ("broadcast", 8, 1.0),
     ("all_reduce", 1, 0.0),
    ("unheard_of", 8, None), ("all_reduce", 0, None)])
def test_factor(collective: str, ranks: int, factor: float | None) -> None:
    assert factor_of(collective, ranks) == factor


def test_ranks_from_figures() -> None:
    rows = summary([row(MIB << shift) for shift in range(5)])
    assert infer_ranks(rows, "all_reduce") == 16
    assert listed_ranks_fit(rows, "all_reduce", 16) and not listed_ranks_fit(rows, "all_reduce", 15)
    assert infer_ranks(rows, "broadcast") is None and infer_ranks(summary([]), "all_reduce") is None


@pytest.mark.parametrize(("collective", "ranks"), [
    ("all_reduce", 16), ("all_gather", 16), ("reduce_scatter", 16), ("alltoall", 16), ("broadcast", None),
     ("reduce", None),
    ("sendrecv", None)])
def test_a_table_alone(collective: str, ranks: int | None) -> None:
    """Collective and ranks of a log that begins with its table."""
    spec = Spec("2.14.1", collective)
    text = "\n".join(rendering.render(spec).split("\n")[len(rendering.head(spec)):])
    ran = parse_text(text).ran
    assert (ran.collective, ran.collective_source, ran.ranks) == (collective, "inferred", ranks)


def test_two_ranks_look_alike() -> None:
    assert parse_text(rendering.render(Spec("2.14.1", nodes=2, each=1))).ran.collective == "all_reduce"
