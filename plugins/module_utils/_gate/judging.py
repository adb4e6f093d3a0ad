# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""One way to judge a log, for the command line and for nccl_test: parse, find the limit, judge, explain.

Without a limit nothing passes: a log alone shows a whole run and checked data, not that it is fast enough.
"""
from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from .._host.errors import AidcError, Problem
from .._nccl.judge import judge
from .._nccl.model import Expected, Limit, Result, Verdict
from .._nccl.parse import parse_file
from .._nccl.run import Criteria, Report, summary
from .cause import Cause, Clue, Wanted, causes, of_result
from .hardware import Algorithm, Hardware, Question
from .reference import Bands, Reference, resolve


@dataclass(frozen=True)
class Ask:
    """What the caller knows. ``criteria``: a number of his own, which comes before what the class would give."""

    criteria: Criteria | None = None
    hardware: Hardware | None = None
    wanted: Wanted = field(default_factory=Wanted)
    expected: Expected = field(default_factory=Expected)
    nodes: int | None = None
    algorithm: Algorithm | None = None
    mnnvl: bool | None = None
    pass_fraction: float = 0.9


@dataclass
class Judgement:
    verdict: Verdict
    result: Result
    limit_reason: str
    causes: list[Cause]
    # What this verdict says nothing about, each in a sentence.
    not_judged: list[str]

    def stored(self) -> dict[str, t.Any]:
        """The result in its stored form, with all error lines."""
        return {**summary(self.result), "errors": self.result.to_dict()["errors"]}


def judge_stream(stream: t.BinaryIO, ask: Ask) -> Judgement:
    result = parse_file(stream)
    reference = _reference(result, ask)
    limit, expected = reference.limit, ask.expected
    if ask.hardware is not None and ask.hardware.gpus_per_node and expected.ranks is None:
        nodes = _nodes(result, ask)
        # A node that runs fewer GPUs than its class has is not what the limit is about.
        expected = dataclasses.replace(expected, ranks=nodes * ask.hardware.gpus_per_node if nodes else None)
    verdict = judge(result, limit, expected)
    missing = _not_judged(result, verdict, reference, expected)
    if verdict.state == "PASS" and limit is None:
        verdict = dataclasses.replace(verdict, state="INCOMPLETE", reason=f"whole run, data checked, peak busbw "
                                      f"{result.peak_busbw_gbps:.2f} GB/s; {missing[0]}")
    return Judgement(verdict, result, reference.reason, _causes(verdict, result, ask.wanted), missing)


def _causes(verdict: Verdict, result: Result, wanted: Wanted) -> list[Cause]:
    plain = result.to_dict()
    clues = [*of_result(plain, wanted), *verdict_clues(verdict.state, verdict.reason)]
    return causes(clues, wanted, plain["errors"])


def explain(report: Report) -> Report:
    """The report with likely causes."""
    if report.verdict is not None and report.result is not None:
        found = _causes(report.verdict, report.result, Wanted())
        report.causes = [cause.to_dict() for cause in found]
    return report


def verdict_clues(state: str, reason: str) -> list[Clue]:
    return [Clue("verdict:SLOW", reason)] if state in ("SLOW", "FAIL") else []


def judged(path: str, criteria: Criteria, expected: Expected) -> Report:
    """What nccl_test returns for a log that exists."""
    refuse(criteria.problems())
    try:
        with open(path, "rb") as stream:
            done = judge_stream(stream, Ask(criteria, expected=expected))
    except OSError as error:
        raise AidcError([Problem("log_file", f"{path}: {error.strerror}", "a log that can be read")]) from error
    return explain(Report([], done.verdict, done.result, {}, path))


def refuse(problems: list[Problem]) -> None:
    if problems:
        raise AidcError(problems)


# -- the limit ------------------------------------------------------------------------------------------


def _reference(result: Result, ask: Ask) -> Reference:
    if ask.criteria is not None:
        limit: Limit = ask.criteria.limit()
        return Reference(limit, "stated by the operator")
    if ask.hardware is None:
        return Reference(None, "neither a node class nor a number was given")
    question = _question(result, ask)
    if isinstance(question, str):
        return Reference(None, question)
    bands = Bands(ask.pass_fraction, min(0.8, ask.pass_fraction))
    return resolve(ask.hardware, question, bands={"": bands})


def _nodes(result: Result, ask: Ask) -> int:
    return ask.nodes or result.ran.nodes or len(result.ran.hosts)


def _question(result: Result, ask: Ask) -> Question | str:
    """What the log measured; or why that cannot be said."""
    nodes, transport = _nodes(result, ask), result.transport
    if result.ran.groups > 1:
        return "the table is an average over several groups, which no limit of the class fits"
    if not nodes:
        return "the log does not say how many nodes ran; give --nodes"
    if not result.ran.collective:
        return "the log does not say which collective ran"
    mnnvl = bool(transport.mnnvl) if ask.mnnvl is None else ask.mnnvl
    forced = transport.environment.get("NCCL_ALGO", "").upper() == "RING" or set(transport.algorithms) == {"RING"}
    algorithm: Algorithm = ask.algorithm or ("ring" if forced else "default")
    return Question(result.ran.collective, nodes, algorithm, mnnvl=mnnvl and nodes > 1)


# -- what was not judged --------------------------------------------------------------------------------


def _not_judged(result: Result, verdict: Verdict, reference: Reference, expected: Expected) -> list[str]:
    found = []
    if reference.limit is None:
        found.append(f"the bandwidth was not judged: {reference.reason}")
    elif verdict.ratio is None:
        found.append("the bandwidth was not judged: the log gives no peak to compare")
    if result.verification != "verified":
        found.append(f"the data was not judged as a whole: its state is {result.verification!r}")
    if not result.transport.info_lines:
        found.append("the way of the data was not judged: no NCCL INFO lines (run with NCCL_DEBUG=INFO)")
    if expected.ranks is None:
        found.append("whether all ranks and nodes ran was not judged: nobody said how many were wanted")
    return found
