# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short run of the fuzzer, in every test run; the long one is tests/fuzz/fuzz_nccl.py --count 1000000."""
from __future__ import annotations

import pytest

from tests.fuzz import fuzz_nccl


@pytest.mark.parametrize(("engine", "count"), [(fuzz_nccl.run_mutate, 1500), (fuzz_nccl.run_hypothesis, 300)])
def test_short_run(engine: fuzz_nccl.Engine, count: int) -> None:
    states = engine(count, 20260203)
    assert sum(states.values()) >= count
    assert "PASS" in states and "INCOMPLETE" in states
