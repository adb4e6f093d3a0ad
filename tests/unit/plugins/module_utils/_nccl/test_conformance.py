# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's collected samples against their index: ranks, rows, sizes, peak, average, wrong, verdict.

The samples belong to others and stand beside the checkout, not in it; without them this is skipped.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.model import Limit
from plugins.module_utils._nccl.parse import parse_text

ROOT = next(parent for parent in Path(__file__).resolve().parents if (parent / "galaxy.yml").exists())
SAMPLES = ROOT.parent / "shared" / "samples" / "nccl"
# The pairs of the index's set 71: 4 NICs of 200G a node, 24 GB/s of payload each (facts nccl-gate 3.1).
PAIR_LIMIT = 96.0
# First words of the index's verdict -> state. "PASS bw" means the bandwidth alone: see `expected`.
STATES = (
    ("PASS bw / data UNVERIFIED", "UNVERIFIED"), ("INCOMPLETE", "INCOMPLETE"), ("NOT A BANDWIDTH TEST", "INVALID"),
    ("INVALID", "INVALID"), ("FAIL consistency", "INVALID"), ("FAIL data", "WRONG"), ("FAIL launch", "LAUNCH"),
    ("RETRY launch", "LAUNCH"), ("FAIL node", "LAUNCH"), ("FAIL run (truncated)", "INCOMPLETE"), ("FAIL run", "CRASH"),
    ("FAIL shape", "SLOW"), ("FAIL vs", "SLOW"), ("SLOW", "SLOW"), ("PASS", "PASS"),
)


@dataclass
class Sample:
    name: str
    ranks: str
    rows: str
    sizes: str
    peak: str
    average: str
    wrong: str
    verdict: str


def samples() -> list[Sample]:
    index = SAMPLES / "INDEX.md"
    if not index.exists():
        return []
    found = []
    for line in index.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.strip("| \n").split(" | ")]
        if line.startswith("| ") and len(fields) >= 10 and fields[0].endswith(".txt"):
            found.append(Sample(fields[0], *fields[3:10]))
    return found


def limit_of(sample: Sample) -> Limit | None:
    if sample.name.startswith("71"):
        return Limit(PAIR_LIMIT, "4 x 24 GB/s")
    match = re.search(r"vs (?:\w+=)?(\d+)", sample.verdict)
    if match and "PASS vs" not in sample.verdict.partition(match[0])[0]:
        return Limit(float(match[1]), "index")
    match = re.search(r"\(gate (\d+)\)", sample.verdict)
    # A gate is the number to reach itself.
    return Limit(float(match[1]), "gate", pass_fraction=1.0) if match else None


def expected(sample: Sample, ratio: float | None) -> str | None:
    """The state that the index's words stand for."""
    words = sample.verdict
    if words == "see note":
        return None
    if "elided" in words or "missing" in words:
        return "INCOMPLETE"
    if ratio is not None and words.startswith("PASS bw vs") and "borderline FAIL" in words:
        return "SLOW"
    if words.startswith("PASS parse"):
        # The index judges the parser here; without any check the data is unverified.
        return "UNVERIFIED" if sample.wrong.startswith("N/A") else "PASS"
    return next(state for start, state in STATES if words.startswith(start))


@pytest.mark.skipif(not samples(), reason="the samples are not beside this checkout")
@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_sample(sample: Sample) -> None:
    result = parse_text((SAMPLES / sample.name).read_bytes())
    listed = result.ran.ranks_listed
    assert str(listed or "unknown") == sample.ranks
    assert result.row_count == int(sample.rows.split()[0])
    if ".." in sample.sizes:
        assert f"{result.ran.min_bytes}..{result.ran.max_bytes}" == sample.sizes
    if sample.peak != "-":
        assert result.peak_busbw_gbps == pytest.approx(float(sample.peak), abs=0.006)
    check_average(sample, result.average_printed, result.average_computed)
    check_wrong(sample, result.out_of_bounds, result.checked_cells, result.wrong_cells)
    limit = limit_of(sample)
    verdict = judge(result, limit)
    state = expected(sample, verdict.ratio)
    assert state in (None, verdict.state), verdict.reason
    if sample.verdict.startswith("PASS bw vs") and "borderline" not in sample.verdict:
        assert verdict.band == "pass"


def check_average(sample: Sample, printed: list[float], computed: float | None) -> None:
    footer, _slash, mean = sample.average.rpartition(" / ")
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", footer)]
    if numbers:
        assert printed == pytest.approx(numbers, rel=1e-5)
    if re.fullmatch(r"[\d.]+", mean):
        assert computed == pytest.approx(float(mean), abs=0.002)


def check_wrong(sample: Sample, footers: list[int], checked: int, wrong: int) -> None:
    cells, _semicolon, footer = sample.wrong.partition(";")
    if footer.strip() == "none":
        assert footers == []
    elif footer:
        assert footers == [int(number) for number in re.findall(r"(\d+) (?:OK|FAILED)", footer)]
    if cells == "N/A":
        assert checked == 0
    elif "FAILED" in footer:
        assert wrong > 0
    else:
        assert wrong == 0
