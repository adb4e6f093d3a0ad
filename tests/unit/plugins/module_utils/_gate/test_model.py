# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from plugins.module_utils._gate.model import Conclusion, Conviction, Outcome
from plugins.module_utils._nccl.model import STATE_RANK, Verdict


@pytest.mark.parametrize("state", STATE_RANK)
def test_every_verdict_has_an_outcome(state: str) -> None:
    outcome = Outcome.of_verdict(Verdict(state, "why", ratio=0.97))  # type: ignore[arg-type]
    assert outcome.note == "why"
    # Only a whole, verified run says anything for a node; only a broken one against it.
    expected = {"PASS": 0.97, "SLOW": 0.97, "WRONG": 0.0, "CRASH": 0.0, "HANG": 0.0}
    assert outcome.value == expected.get(state)


@pytest.mark.parametrize("ratio", [None, float("nan"), float("inf"), -0.1, 5.0])
def test_a_ratio_that_cannot_be_is_no_evidence(ratio: float | None) -> None:
    assert Outcome("ok", ratio).value is None
    assert Outcome("ok", ratio).to_dict()["ratio"] is None


def test_outcome_there_and_back() -> None:
    one = Outcome("ok", 0.9, {0: 0.97, 7: 0.5}, "note")
    assert Outcome.from_dict(one.to_dict()) == one
    assert Outcome.from_dict({"state": "hang"}) == Outcome("hang")


def test_paths_drain_nobody() -> None:
    convicted = [Conviction("path", ("a", "b"), "slow"), Conviction("rail", ("c",), "slow")]
    conclusion = Conclusion("FAIL", "", True, convicted)
    assert conclusion.bad_nodes == ["c"]
