# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvconfig.model import Row, Value, Wanted, make_want


@pytest.mark.parametrize(("text", "name", "number"), [
    ("ETH(2)", "ETH", 2), ("True(1)", "True", 1), ("_256KB(1)", "_256KB", 1), ("255", None, 255), ("007", None, 7),
    ("0x1F", None, 31), ("N/A", None, None), ("Array[0..7]", None, None), ("A(B)(3)", "A(B)", 3), ("-1", None, None),
])
def test_value(text: str, name: str | None, number: int | None) -> None:
    assert (Value(text).name, Value(text).number) == (name, number)


@pytest.mark.parametrize(("wanted", "value", "fits"), [
    ("ETH", "ETH(2)", True), ("eth", "ETH(2)", True), ("2", "ETH(2)", True), ("ETH(2)", "ETH(2)", True),
    ("0x2", "ETH(2)", True), ("IB", "ETH(2)", False), ("1", "ETH(2)", False), ("True", "True(1)", True),
    ("1", "True(1)", True), ("false", "False(0)", True), ("True", "False(0)", False), ("48", "48", True),
    ("048", "48", True), ("4", "48", False), ("48", "N/A", False),
    # A number for which the tool has no name is no name.
    ("HOST_0", "148", False), ("148", "148", True),
])
def test_fits(wanted: str, value: str, fits: bool) -> None:
    assert Wanted(wanted).fits(Value(value)) is fits
    assert not Wanted(wanted).fits(None)


def test_argument() -> None:
    assert [Wanted(text).argument() for text in ("ETH", "2", "ETH(2)", "True")] == ["ETH", "2", "2", "True"]


def test_options_become_wants() -> None:
    want = make_want("p", {"link_type_p1": "ETH", "NUM_OF_VFS": 8, "SRIOV_EN": True, "A[2]": 1, "B[0..1]": 5,
                           "C[3..4]": [1, "TWO"], "7": 1, "D": None, "E[3..1]": 1, "F[0..1]": [1], "G": [1], "H": " ",
                           "A[02]": 3, "I": 1 << 32, "K[0..999]": 1, "L": 1.5})
    assert {name: wanted.text for name, wanted in want.parameters.items()} == {
        "LINK_TYPE_P1": "ETH", "NUM_OF_VFS": "8", "SRIOV_EN": "True", "A[2]": "1", "B[0]": "5", "B[1]": "5",
        "C[3]": "1", "C[4]": "TWO"}
    assert want.parameters["SRIOV_EN"].boolean and not want.parameters["NUM_OF_VFS"].boolean
    assert [problem.object for problem in want.problems] == [
        "p 7", "p E[3..1]", "p F[0..1]", "p G", "p H", "p A[2]", "p I", "p K[0..999]", "p L"]
    assert [problem.got for problem in want.problems if problem.object == "p A[2]"] == ["given twice"]


def test_a_devices_own_values_win_index_by_index() -> None:
    want = make_want("p", {"A[0..3]": 1, "B": 2, "C": 3}, {"a[2]": 9, "A[3]": None, "b": None, "D": None})
    assert {name: wanted.text for name, wanted in want.parameters.items()} == {
        "A[0]": "1", "A[1]": "1", "A[2]": "9", "C": "3"}
    assert want.problems == ()
    assert len(make_want("p", {"A[": 1}, {"B": [2]}).problems) == 2


@pytest.mark.parametrize(("texts", "boolean", "names"), [
    (("False(0)", None, "False(0)"), True, True), (("0", "0", "0"), False, False), ((None, "148", "X(0)"), False, True),
])
def test_row(texts: tuple[t.Any, ...], boolean: bool, names: bool) -> None:
    default, current, following = (Value(text) if text else None for text in texts)
    assert following is not None
    row = Row("A", following, default, current)
    assert (row.is_boolean, row.has_names) == (boolean, names)
