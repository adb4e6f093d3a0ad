# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math

import pytest

from plugins.module_utils._nccl.judge import judge
from plugins.module_utils._nccl.model import STATE_RANK, Expected, Limit, Result
from plugins.module_utils._nccl.parse import parse_text

from . import failures, rendering
from .rendering import BAD, FIXTURES, GIB, MIB, Spec

SPEC = Spec("2.19.6")
GOOD = parse_text(rendering.render(SPEC))
PEAK = 189.63


def edited(old: str, new: str, spec: Spec = SPEC) -> Result:
    text = rendering.render(spec)
    assert old in text
    return parse_text(text.replace(old, new))


@pytest.mark.parametrize("name", BAD)
def test_bad_fixtures(name: str) -> None:
    verdict = judge(parse_text((FIXTURES / f"{name}.txt").read_bytes()), Limit(10.0))
    assert verdict.state == BAD[name][1], verdict.reason


@pytest.mark.parametrize("name", failures.LOGS)
def test_failed_runs(name: str) -> None:
    text, state, host, hca = failures.LOGS[name]
    verdict = judge(parse_text(text))
    assert verdict.state == state, verdict.reason
    found = verdict.culprit
    assert ((found.host, found.hca) if found else ("", "")) == (host, hca)


@pytest.mark.parametrize(("fraction", "state", "band"), [
    (1.0, "PASS", "pass"), (0.9001, "PASS", "pass"), (0.8999, "SLOW", "slow"), (0.8001, "SLOW", "slow"),
     (0.7999, "SLOW", "fail")])
def test_bands(fraction: float, state: str, band: str) -> None:
    verdict = judge(GOOD, Limit(PEAK / fraction, "table"))
    assert (verdict.state, verdict.band) == (state, band)
    assert verdict.ratio == pytest.approx(fraction)
    assert "table" in verdict.reason


def test_limits_that_are_none() -> None:
    assert judge(GOOD).details["bandwidth_judged"] is False and "not judged" in judge(GOOD).reason
    for number in (0.0, -1.0, math.nan, math.inf):
        assert judge(GOOD, Limit(number)).state == "INVALID"
    assert judge(GOOD, Limit(100.0, upper_bound=150.0)).state == "INVALID"
    assert judge(GOOD, Limit(190.0, pass_fraction=0.999)).state == "SLOW"


@pytest.mark.parametrize("expected", [
    Expected(ranks=32), Expected(nodes=4), Expected(hosts=("gpu01", "gpu03")), Expected(collective="alltoall"),
    Expected(max_bytes=16 * GIB), Expected(min_bytes=MIB), Expected(exit_code=255)])
def test_not_what_was_wanted(expected: Expected) -> None:
    assert judge(GOOD, Limit(190.0), expected).state == "INVALID"


def test_what_was_wanted() -> None:
    expected = Expected("all_reduce", 16, 2, ("gpu02.example.org", "gpu01"), 16 * MIB, 4 * GIB, 150.0, 0)
    assert judge(GOOD, Limit(190.0), expected).state == "PASS"
    missing = judge(GOOD, None, Expected(hosts=("gpu01", "gpu02", "gpu03")))
    assert missing.culprit is not None and missing.culprit.host == "gpu03"


@pytest.mark.parametrize(("expected", "state"), [
    (Expected(exit_code=2), "CRASH"), (Expected(exit_code=4), "HANG"), (Expected(exit_code=137), "CRASH"),
    (Expected(timed_out=True), "HANG"), (Expected(min_busbw_gbps=200.0), "SLOW"), (Expected(exit_code=127), "CRASH")])
def test_how_the_run_ended(expected: Expected, state: str) -> None:
    assert judge(GOOD, Limit(190.0), expected).state == state


def test_launch_by_exit_code() -> None:
    assert judge(parse_text(""), None, Expected(exit_code=127)).state == "LAUNCH"


def test_min_bw_is_not_our_limit() -> None:
    text = rendering.render(Spec("2.19.6",
        average_word="FAILED")) + " .. gpu01 pid 31000: Test failure common.cu:1031\n"
    result = parse_text(text)
    assert judge(result, Limit(190.0), Expected(exit_code=7)).state == "PASS"
    assert judge(parse_text(text.replace(" FAILED", "")), Limit(190.0)).state == "CRASH"


@pytest.mark.parametrize(("old", "new", "state", "finding"), [
    ("Out of bounds values : 0 OK", "", "INCOMPLETE", "no-bounds"),
    ("Avg bus bandwidth", "Avg", "INCOMPLETE", "no-average"),
    ("#  Rank  3 ", "#", "INCOMPLETE", "ranks-lost"),
    ("#  Rank 15 ", "#", "INVALID", "ranks-factor"),
    ("maxBytes 4294967296", "maxBytes 17179869184", "INCOMPLETE", "sizes-short"),
    ("minBytes 16777216", "minBytes 1048576", "INCOMPLETE", "sizes-late"),
    ("# Using devices", "# Reducing maxBytes to 4294967296 due to memory limitation\n# Using devices", "INVALID",
     "sizes-reduced"),
    ("  101.", "  103.", "INVALID", "figures"),
    ("  189.63", "  179.63", "INVALID", "factor"),
    ("count", "cnt", "PASS", ""),
    ("busbw", "bw", "INCOMPLETE", "no-header"),
    ("   float  ", "   flo at  ", "INCOMPLETE", "no-rows"),
])
def test_contradictions(old: str, new: str, state: str, finding: str) -> None:
    result = edited(old, new)
    verdict = judge(result, Limit(10.0))
    assert verdict.state == state, verdict.details
    assert not finding or finding in [entry["id"] for entry in verdict.details["reasons"]]


def test_a_missing_row_shows() -> None:
    lines = rendering.render(SPEC).split("\n")
    for at in [number for number, line in enumerate(lines) if " float " in line]:
        assert judge(parse_text("\n".join(lines[:at] + lines[at + 1:]))).state == "INCOMPLETE"


def test_shape() -> None:
    sweep = Spec("2.19.6", sizes=tuple(MIB << shift for shift in range(12)))
    assert judge(parse_text(rendering.render(sweep))).state == "PASS"
    slow = {size: Spec("2.19.6", bandwidth=20.0) for size in sweep.sizes[-3:]}
    rows = ["".join(rendering.row(slow.get(size, sweep), size, 0)) for size in sweep.sizes]
    cells = [cell.busbw for size in sweep.sizes for cell in rendering.cells(slow.get(size, sweep), size, 0)]
    text = "\n".join([*rendering.head(sweep), *rendering.columns(sweep), *rows,
        *rendering.foot(sweep, sum(cells) / len(cells))])
    verdict = judge(parse_text(text))
    assert verdict.state == "SLOW" and "falls" in verdict.reason


def test_unstable_cycles() -> None:
    spec, slow = Spec("2.19.6", cycles=3), Spec("2.19.6", bandwidth=120.0)
    rows = ["".join(rendering.row(slow if index >= 10 else spec, size, 0)) for index, size in enumerate(spec.sweep())]
    cells = [cell.busbw for index,
        size in enumerate(spec.sweep()) for cell in rendering.cells(slow if index >= 10 else spec, size, 0)]
    text = "\n".join([*rendering.head(spec), *rendering.columns(spec), *rows,
        *rendering.foot(spec, sum(cells) / len(cells))])
    assert judge(parse_text(text)).state == "SLOW"


def test_sockets() -> None:
    lines = ("gpu01:1:2 [0] NCCL INFO NET/IB : No device found.\ngpu01:1:2 [0] NCCL INFO NET/Socket : Using "
             "[0]eth0:192.0.2.1<0>\n"
             "gpu01:1:2 [0] NCCL INFO Using network Socket\n"
             "gpu01:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/Socket/0\n")
    two = parse_text(lines + rendering.render(SPEC))
    assert judge(two, Limit(190.0)).state == "SLOW" and "RDMA" in judge(two).reason
    assert judge(two, Limit(190.0), Expected(allow_socket=True)).state == "PASS"
    one = parse_text(lines + rendering.render(rendering.LAYOUTS["v2.19.6-single-process"]))
    assert judge(one).state == "PASS"


def test_a_retried_launch_is_forgiven() -> None:
    first = "ssh: Could not resolve hostname gpu02: Name or service not known\n"
    verdict = judge(parse_text(first + rendering.render(SPEC)))
    assert verdict.state == "PASS"


def test_simulated_only_in_a_lab() -> None:
    result = parse_text(rendering.render(Spec("2.19.6", simulated=True)))
    assert judge(result, Limit(190.0)).state == "INVALID"
    verdict = judge(result, Limit(190.0), Expected(allow_simulated=True))
    assert (verdict.state, verdict.label) == ("PASS", "PASS (SIMULATED)")
    assert verdict.to_dict()["simulated"] is True


def test_every_state_has_a_rank() -> None:
    assert [state for state, rank in STATE_RANK.items() if rank == 0] == ["PASS"]
