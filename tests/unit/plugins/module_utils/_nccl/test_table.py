# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._nccl.table import (
    RowBuilder,
    columns_of,
    is_value,
    number,
    read_layout,
)

HALF = "   time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root  {HALF}  {HALF}"
NEWER = "# size count type redop root time algbw busbw latency #wrong time algbw busbw latency #wrong  power"
ROW = "1048576 262144 float sum -1 10.0 104.86 196.61 0 11.0 95.33 178.74 0"


def builder(header: str = HEADER) -> RowBuilder:
    rows = RowBuilder()
    rows.layout = read_layout(header)
    assert rows.layout is not None
    return rows


def test_layout() -> None:
    layout = builder().layout
    assert layout is not None
    assert (layout.name, layout.half, layout.width) == ("2.13", 4, 8)
    assert layout.redop and layout.root and layout.plain
    assert columns_of(HEADER) and not columns_of("# nThread 1")


@pytest.mark.parametrize("header", [
    "", "#", HEADER[:-60], HEADER.replace("algbw", "alg", 1), "time time", "# time busbw algbw"])
def test_no_layout(header: str) -> None:
    assert read_layout(header) is None


def test_unknown_columns_are_carried() -> None:
    row = builder(NEWER).add([*["1048576", "262144", "float", "sum", "-1", "10.0", "104.86", "196.61"],
        *["5", "0", "11.0", "95.33", "178.74", "5", "7", "300"]])
    assert row is not None and row.out_of_place is not None and row.in_place is not None
    assert (row.out_of_place.wrong, row.in_place.wrong, row.in_place.busbw_gbps) == (0.0, 7.0, 178.74)


def test_pieces() -> None:
    rows, tokens = builder(), ROW.split()
    for cut in range(3, len(tokens)):
        assert rows.add(tokens[:cut]) is None and rows.pending
        row = rows.add(tokens[cut:])
        assert row is not None and row.size_bytes == 1048576 and not rows.pending
    assert rows.broken == 0


@pytest.mark.parametrize("text", [
    ROW + " 1", ROW.replace("10.0", "ten"), ROW.replace("196.61", "N/A"), ROW.replace("1048576", "9" * 30)])
def test_broken_rows(text: str) -> None:
    rows = builder()
    assert rows.add(text.split()) is None and rows.broken == 1


def test_values_without_their_beginning() -> None:
    rows = builder()
    assert rows.add(["10.0", "104.86", "196.61", "0"]) is None and rows.broken == 1
    rows.abort()
    assert rows.broken == 1


def test_rows_without_header_cannot_be_read() -> None:
    rows = RowBuilder()
    assert rows.add(ROW.split()) is None and rows.broken == 1


@pytest.mark.parametrize(("kind", "difference", "wrong"), [
    ("float", "4e-07", 0.0), ("float", "1e+00", 1.0), ("half", "5e-03", 0.0), ("double", "1e-07", 1e-07),
    ("int32", "1e+00", 1.0)])
def test_old_error_column_is_a_difference(kind: str, difference: str, wrong: float) -> None:
    header = HEADER.replace("#wrong", "error").replace("root", "")
    row = builder(header).add(f"64 16 {kind} sum 10.0 1.0 1.0 {difference} 10.0 1.0 1.0 0e+00".split())
    assert row is not None and row.out_of_place is not None and row.out_of_place.wrong == pytest.approx(wrong)


def test_numbers() -> None:
    assert (number("N/A"), number("1.3e+07")) == (None, 1.3e7)
    assert is_value("nan") and is_value("inf") and not is_value("sum")
