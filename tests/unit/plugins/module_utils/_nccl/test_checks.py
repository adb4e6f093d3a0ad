# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._nccl.parse import parse_text

from . import rendering
from .rendering import Spec


def findings(text: str) -> dict[str, str]:
    return {finding.id: finding.state for finding in parse_text(text).findings}


def test_a_good_run_has_none() -> None:
    assert findings(rendering.render(Spec("2.19.6"))) == {}


def test_an_empty_log() -> None:
    assert findings("") == {"no-header": "INCOMPLETE", "no-rows": "INCOMPLETE", "no-bounds": "INCOMPLETE",
        "no-average": "INCOMPLETE"}


@pytest.mark.parametrize(("spec", "finding", "state"), [
    (Spec("2.19.6", checked=False), "unverified", "UNVERIFIED"), (Spec("2.19.6", wrong_at=1 << 24), "wrong", "WRONG"),
    (Spec("2.19.6", nodes=1, each=1), "one-rank", "INVALID"), (Spec("2.19.6", groups=8), "groups", ""),
    (Spec("2.19.6", average_word="FAILED"), "min-bw", "")])
def test_findings(spec: Spec, finding: str, state: str) -> None:
    assert findings(rendering.render(spec))[finding] == state


def test_partly_checked() -> None:
    text = rendering.render(Spec("2.19.6"))
    at = text.rindex("       0\n")
    assert findings(text[:at] + "     N/A\n" + text[at + 9:])["partly"] == "UNVERIFIED"


def test_in_place_never_checked() -> None:
    """The form of alltoall, but the log names another collective."""
    text = rendering.render(Spec("2.19.6", "alltoall")).replace("alltoall_perf", "all_gather_perf")
    assert findings(text)["partly"] == "UNVERIFIED"


def test_nccl_counts_other_ranks() -> None:
    line = "gpu01:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0\n"
    assert findings(line + rendering.render(Spec("2.19.6")))["ranks-nccl"] == "INVALID"


def test_uneven_rank_lists() -> None:
    single = rendering.render(rendering.LAYOUTS["v2.19.6-single-process"])
    lines = [line for line in single.split("\n") if "Rank  7" not in line]
    assert findings("\n".join(lines))["ranks-uneven"] == "INCOMPLETE"
