# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data that the role ships, row by row: distributions and architectures, and what is known to be bad."""
from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.aidc.gpu_cluster.plugins.action import nvidia_driver as action
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.model import Pci
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu.tables import board
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import catalog
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import Node, Request
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._stack.model import Os

CASES = yaml.safe_load(Path(__file__).with_name("golden.yml").read_text(encoding="utf-8"))
SETS = tuple(catalog.package_set(row) for row in action.shipped("package_sets"))
BAD = tuple(catalog.known_bad(row) for row in action.shipped("known_bad"))


def case_of(case: dict[str, t.Any]) -> tuple[Request, Node]:
    given = case["node"]
    known = board(given["gpu"])
    assert known is not None
    request = replace(Request("580.159.04", board=known.kind, sets=SETS, known_bad=BAD), **case.get("request", {}))
    family = "RedHat" if given["os"][0] in ("rhel", "rocky") else "Debian"
    return request, Node(
        os=Os(given["os"][0], given["os"][1], family=family), architecture=given["architecture"],
        kernel=given["kernel"], kernels=(given["kernel"],), gpus=(Pci("0000:01:00.0", given["gpu"]),),
        page_size_bytes=given.get("page_size_bytes", 4096))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_golden_set(case: dict[str, t.Any]) -> None:
    request, node = case_of(case)
    want = case["want"]
    assert [row.id for row in catalog.bad(request, node)] == want.get("bad", [])
    chosen = catalog.choose(request, node)
    if "refused" in want:
        assert chosen is None
        problem = catalog.refusal(request, node)
        assert problem.object == want["refused"] and node.os.id in problem.got
        return
    assert chosen is not None and chosen.id == want["set"]
    names = catalog.names(chosen, request, node)
    assert [name.name for name in names if name.pinned] == want["pinned"]
    assert [name.name for name in names if not name.pinned] == want["others"]
    assert list(catalog.held_with(chosen, node)) == want.get("held_with", [])
    assert chosen.stream.get(request.flavour, "").format(branch=request.branch) == want.get("stream", "")


def test_every_set_and_every_bad_row_is_in_the_cases() -> None:
    assert {case["want"].get("set") for case in CASES} - {None} == {one.id for one in SETS}
    assert {row for case in CASES for row in case["want"].get("bad", [])} == {row.id for row in BAD}


def test_rows_have_sources_and_stand_once() -> None:
    for rows in (SETS, BAD):
        assert len({row.id for row in rows}) == len(rows)
        assert all(row.source for row in rows)
    for name in ("package_sets.yml", "known_bad.yml"):
        assert str(yaml.safe_load((action.DATA / name).read_text(encoding="utf-8"))["dated"]) >= "2026-12-01"


def test_no_two_sets_are_for_the_same_node() -> None:
    for number, one in enumerate(SETS):
        for other in SETS[number + 1:]:
            if one.repository == other.repository and set(one.distributions) & set(other.distributions):
                low, high = sorted((one, other), key=lambda row: row.branch_from)
                assert low.branch_below is not None and low.branch_below <= high.branch_from
