# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""From a parsed log to one of nine states. Pure: no file, no clock, no environment.

All that speaks against a pass is collected; the gravest state wins. A pass is what remains when nothing
does: one whole run of the ranks and sizes asked for, its data checked, its bandwidth at the limit.
Without a limit PASS means "a whole and checked run"; ``details["bandwidth_judged"]`` is then false.
"""
from __future__ import annotations

import math
import typing as t

from .checks import OUT_OF_PLACE_ONLY
from .errors import culprit_of, first_error
from .model import Culprit, ErrorLine, Expected, Limit, Result, State, Verdict

_ORDER: tuple[State, ...] = (
    "WRONG", "HANG", "LAUNCH", "CRASH", "INVALID", "INCOMPLETE", "SLOW", "UNVERIFIED",
)
# These make a run useless as a test whatever else it shows, also wrong data.
_HARD = ("simulated", "hypercube")
# Exit codes that name their state (facts 1.5): the launcher's, the tool's, timeout(1)'s.
_EXIT_STATES: dict[int, State] = {4: "HANG", 5: "LAUNCH", 124: "HANG", 126: "LAUNCH", 127: "LAUNCH", 255: "INVALID"}
# With these the tool also reports a miss of NCCL_TESTS_MIN_BW, which is not our limit (facts 1.5, 1.6).
_MIN_BW_CODES = (1, 6, 7)


class Reason(t.NamedTuple):
    state: State
    id: str
    text: str
    culprit: Culprit | None = None


def judge(result: Result, limit: Limit | None = None, expected: Expected | None = None) -> Verdict:
    """The verdict on one run, with its reason."""
    expected = expected or Expected()
    band, ratio = _band(result, limit)
    reasons = [
        *_simulated(result, expected),
        *(Reason(t.cast(State, finding.state), finding.id, finding.text)
          for finding in result.findings if finding.state and not _allowed(finding.id, expected)),
        *_expected(result, expected),
    ]
    reasons += _ends(result, expected, whole=not any(reason.state == "INCOMPLETE" for reason in reasons))
    reasons += _bandwidth(result, limit, expected, band, ratio)
    chosen = _gravest(reasons)
    verdict = Verdict(
        chosen.state if chosen else "PASS", chosen.text if chosen else _good(result, limit, ratio), limit, ratio, band,
        chosen.culprit if chosen else None, result.simulated,
    )
    verdict.details = {
        "reasons": [{"state": reason.state, "id": reason.id, "text": reason.text} for reason in reasons],
        "notes": [finding.text for finding in result.findings if not finding.state],
        "bandwidth_judged": limit is not None or expected.min_busbw_gbps is not None,
        "peak_busbw_gbps": result.peak_busbw_gbps, "average_busbw_gbps": result.average_computed,
        "verification": result.verification, "ranks": result.ran.ranks, "ranks_source": result.ran.ranks_source,
    }
    return verdict


def _gravest(reasons: list[Reason]) -> Reason | None:
    hard = [reason for reason in reasons if reason.id in _HARD]
    if hard:
        return hard[0]
    return min(reasons, key=lambda reason: _ORDER.index(reason.state), default=None)


def _good(result: Result, limit: Limit | None, ratio: float | None) -> str:
    peak = f"peak busbw {result.peak_busbw_gbps:.4g} GB/s"
    if limit is None or ratio is None:
        return f"{peak}, whole run, data checked; no limit given, so the bandwidth itself is not judged"
    return f"{peak} is {ratio:.1%} of {limit.busbw_gbps:g} GB/s ({limit.rule or 'limit'})"


def _allowed(finding: str, expected: Expected) -> bool:
    return finding == "socket" and expected.allow_socket


def _simulated(result: Result, expected: Expected) -> t.Iterator[Reason]:
    if result.simulated and not expected.allow_simulated:
        yield Reason("INVALID", "simulated", "the log comes from a stand-in (SIMULATED), and this is no lab")


# -- what was asked for ---------------------------------------------------------------------------------


def _expected(result: Result, expected: Expected) -> t.Iterator[Reason]:
    ran = result.ran
    if not result.row_count:
        return
    if expected.ranks is not None and ran.ranks != expected.ranks:
        yield Reason("INVALID", "ranks-expected", f"{expected.ranks} ranks were wanted, {_known(ran.ranks)} ran")
    if expected.nodes is not None and ran.nodes is not None and ran.nodes != expected.nodes:
        yield Reason("INVALID", "nodes-expected", f"{expected.nodes} nodes were wanted, {ran.nodes} ran")
    if expected.hosts is not None and ran.hosts and set(map(_short, ran.hosts)) != set(map(_short, expected.hosts)):
        missing = sorted(set(map(_short, expected.hosts)) - set(map(_short, ran.hosts)))
        yield Reason("INVALID", "hosts-expected",
                     f"other hosts ran than wanted; missing: {', '.join(missing[:8]) or 'none'}",
                     Culprit(host=missing[0]) if len(missing) == 1 else None)
    if expected.collective and ran.collective and not _same(expected.collective, ran.collective, ran.collective_source):
        yield Reason("INVALID", "collective-expected", f"{expected.collective} was wanted, {ran.collective} ran")
    # Sizes are cut to multiples of 16 bytes a rank, so the nearest counts (facts 1.2).
    trim = 32 * (ran.ranks or 64)
    if expected.max_bytes is not None and (ran.max_bytes or 0) < expected.max_bytes * 0.98 - trim:
        yield Reason("INVALID", "sizes-expected",
                     f"sizes up to {expected.max_bytes} were wanted, {ran.max_bytes} is the largest")
    if expected.min_bytes is not None and (ran.min_bytes or 0) > expected.min_bytes * 1.01 + trim:
        yield Reason("INVALID", "sizes-expected",
                     f"sizes from {expected.min_bytes} were wanted, {ran.min_bytes} is the smallest")


def _same(wanted: str, ran: str, source: str) -> bool:
    """An inferred name may be one of several that look alike."""
    if source == "inferred" and {wanted, ran} <= OUT_OF_PLACE_ONLY | {"all_gather"}:
        return True
    return wanted == ran


def _known(number: int | None) -> str:
    return "an unknown number" if number is None else str(number)


def _short(host: str) -> str:
    """The tool cuts host names at the first dot (nccl-tests src/common.cu getHostName)."""
    return host.partition(".")[0].lower()


# -- how it ended ---------------------------------------------------------------------------------------


def _ends(result: Result, expected: Expected, whole: bool) -> t.Iterator[Reason]:
    """Errors count if they always do, or if the run did not reach a good end without them."""
    explained = "FAILED" in result.average_words or result.wrong_cells > 0 or result.out_of_bounds_failed
    serious = [error for error in result.errors if error.state and _counts(error, whole, explained)]
    first = first_error(serious)
    for error in serious:
        # The first one carries the culprit; a wrapper must not outweigh the cause.
        if error is first or error.role == "cause":
            yield Reason(_state_of(error, result), error.id, _text(error), culprit_of(error, result.errors))
    if not serious and not whole:
        unknown = first_error(result.errors)
        if unknown is not None:
            yield Reason("CRASH", unknown.id, f"the run did not end, and NCCL warned: {unknown.text}",
                         culprit_of(unknown, result.errors))
    yield from _exit(result, expected, whole, explained)


def _counts(error: ErrorLine, whole: bool, explained: bool) -> bool:
    if error.always:
        return True
    if error.role == "wrapper":
        # A miss of NCCL_TESTS_MIN_BW or wrong data ends like this; both are reported by themselves.
        return not (whole and explained)
    return not whole


def _state_of(error: ErrorLine, result: Result) -> State:
    if result.row_count and error.state in ("LAUNCH", "INVALID"):
        return "CRASH"
    return t.cast(State, error.state)


def _text(error: ErrorLine) -> str:
    where = " ".join(filter(None, (error.host, f"rank {error.rank}" if error.rank is not None else "",
                                   f"device {error.device}" if error.device is not None else "", error.hca)))
    return f"{error.meaning} ({where})" if where else error.meaning


def _exit(result: Result, expected: Expected, whole: bool, explained: bool) -> t.Iterator[Reason]:
    if expected.timed_out:
        yield Reason("HANG", "timed-out", "the run did not end in its time")
    code = expected.exit_code
    if not code or (whole and explained and code in _MIN_BW_CODES):
        return
    state = _EXIT_STATES.get(code, "CRASH")
    if state == "LAUNCH" and result.row_count:
        state = "CRASH"
    yield Reason(state, "exit-code", f"exit code {code}")


# -- bandwidth ------------------------------------------------------------------------------------------


def _band(result: Result, limit: Limit | None) -> tuple[str, float | None]:
    peak = result.peak_busbw_gbps
    if limit is None or peak is None:
        return "", None
    # A limit that is no positive number would pass everything.
    if not (math.isfinite(limit.busbw_gbps) and limit.busbw_gbps > 0):
        return "", None
    ratio = peak / limit.busbw_gbps
    if limit.upper_bound is not None and peak > limit.upper_bound:
        return "implausible", ratio
    if ratio >= limit.pass_fraction:
        return "pass", ratio
    return ("slow" if ratio >= limit.fail_fraction else "fail"), ratio


def _bandwidth(result: Result, limit: Limit | None, expected: Expected, band: str,
               ratio: float | None) -> t.Iterator[Reason]:
    peak = result.peak_busbw_gbps
    if peak is None:
        return
    if limit is not None and ratio is None:
        yield Reason("INVALID", "limit", f"the limit {limit.busbw_gbps} GB/s is no positive number")
    elif limit is not None and band == "implausible":
        yield Reason("INVALID", "implausible",
                     f"peak busbw {peak:.4g} GB/s is above what is possible ({limit.upper_bound:g} GB/s)")
    elif limit is not None and band in ("slow", "fail"):
        yield Reason("SLOW", "bandwidth", f"peak busbw {peak:.4g} GB/s is {ratio:.1%} of {limit.busbw_gbps:g} GB/s "
                     f"({limit.rule or 'limit'}); {limit.pass_fraction:.0%} are needed")
    if expected.min_busbw_gbps is not None and not peak >= expected.min_busbw_gbps:
        yield Reason("SLOW", "min-busbw",
                     f"peak busbw {peak:.4g} GB/s is below the {expected.min_busbw_gbps:g} GB/s asked for")
