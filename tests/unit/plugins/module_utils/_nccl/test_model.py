# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import math

from plugins.module_utils._nccl.model import Finding, Limit, Result, Verdict


def test_plain_values_for_strict_json() -> None:
    result = Result(peak_busbw_gbps=math.inf, average_printed=[math.nan], findings=[Finding("a", "", "b")])
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert json.loads(text)["peak_busbw_gbps"] == "inf"


def test_label() -> None:
    verdict = Verdict("PASS", "because", Limit(1.0), simulated=True)
    assert verdict.label == "PASS (SIMULATED)" and verdict.to_dict()["label"] == "PASS (SIMULATED)"
    assert Verdict("SLOW", "because").label == "SLOW"
