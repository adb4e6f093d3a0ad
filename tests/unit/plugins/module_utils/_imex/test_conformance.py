# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collected samples of nvidia-imex-ctl; skipped where there are none."""
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import judge, parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import Member

SAMPLES = Path(__file__).resolve().parents[5].parent / "shared" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="skipped: no folder of field samples beside the checkout")


def text(number: int) -> str:
    return (SAMPLES / f"nvidia-imex-ctl-{number}.txt").read_text(encoding="utf-8")


def test_a_whole_rack() -> None:
    found = parse.domain_text(text(1))
    nodes = [f"10.0.1.{number}" for number in range(11, 29)]
    assert (len(found.members), len(found.links), found.state) == (18, 324, "UP")
    assert judge.problems(found, nodes, "570.172.08") == [], "two parts of three are the same version"
    assert [one.got for one in judge.problems(found, nodes, "580.126.09")] == ["IMEX 570.172"] * 18
    assert [one.got for one in judge.problems(found, nodes[1:], None)] == ["also 10.0.1.11"]


def test_one_node_of_an_older_build() -> None:
    found = parse.domain_text(text(2))
    assert (found.members, found.state) == ({0: Member("10.0.0.48", "READY")}, "UP")
    assert judge.problems(found, ["10.0.0.48"], "570.124.06") == []
    assert [one.got for one in judge.problems(found, ["10.0.0.48", "10.0.0.49"], None)] == ["no 10.0.0.49"]


def test_lines_with_host_names() -> None:
    found = parse.domain_text(text(3) + "Domain State: DEGRADED\n")
    assert found.members == {
        0: Member("10.0.6.8", "READY", "580.173.02", "tray01"), 1: Member("10.0.6.9", "READY", "580.173.02", "tray02"),
        11: Member("10.0.6.19", "UNAVAILABLE", "", "tray12")}


def test_json() -> None:
    found = parse.domain_json(text(4))
    assert (found.state, sorted(found.members), len(found.links)) == ("DEGRADED", [1, 3], 4)
    assert not parse.is_unknown(found)
    assert [f"{one.object}: {one.got}" for one in judge.problems(found, ["10.0.0.1", "10.0.0.3"], "580.30.02")] == [
        "links 10.0.0.1 to 10.0.0.3, 10.0.0.3 to 10.0.0.3: not in the table", "state of the domain: DEGRADED"]


def test_one_word() -> None:
    assert parse.daemon_state(text(5)) == "READY"
    for number in (1, 2, 3, 4):
        with pytest.raises(ValueError, match="no state"):
            parse.daemon_state(text(number))
