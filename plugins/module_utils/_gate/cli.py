# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The gate's command line, see docs/gate.md. Exit codes: 0 pass, 2 fail, 3 no verdict (incomplete, invalid, usage)."""
from __future__ import annotations

import argparse
import json
import sys
import typing as t
from pathlib import Path

from .._host.errors import AidcError, Problem
from .._nccl.model import Expected
from .._nccl.run import Criteria
from . import html, junit
from .classes import CLASSES, node_class
from .document import CaseError, Document, of_case, of_log
from .judging import Ask, judge_stream, refuse
from .plan import PlanError

NO_VERDICT = 3


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        """argparse would exit with 2, which is a verdict here."""
        self.print_usage(sys.stderr)
        self.exit(NO_VERDICT, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gate", description="Judge logs of nccl-tests. Exit: 0 pass, 2 fail, 3 no verdict.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    log = commands.add_parser("judge", help="judge a log")
    log.add_argument("log", metavar="LOG", help="file, or - for the standard input")
    log.add_argument("--min-busbw", type=float, metavar="GB/s", help="what the peak is measured against")
    log.add_argument("--pass-fraction", type=float, default=0.9, metavar="F", help="part of it that is enough (0.9)")
    log.add_argument("--class", dest="node_class", metavar="NAME", help=f"node class: {', '.join(sorted(CLASSES))}")
    log.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change the class, as nics=2")
    log.add_argument("--nodes", type=int, metavar="N", help="nodes that were asked for")
    log.add_argument("--ranks", type=int, metavar="N", help="ranks that were asked for")
    log.add_argument("--allow-socket", action="store_true", help="a run without RDMA may pass")
    case = commands.add_parser("report", help="report a stored search")
    case.add_argument("log", metavar="CASE", help="file, or - for the standard input")
    for command in (log, case):
        command.add_argument("--json", action="store_true", help="print the report as JSON")
        command.add_argument("--html", metavar="FILE", help="write the report as a page")
        command.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML")
        command.add_argument("--allow-simulated", action="store_true", help="results of the lab may pass")
    return parser


def main(argv: t.Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    try:
        document = _judged(options) if options.command == "judge" else _reported(options)
        _write(options.html, html.render(document) if options.html else "")
        _write(options.junit, junit.render(document) if options.junit else "")
    except AidcError as error:
        sys.stderr.write("".join(f"gate: {problem.text()}\n" for problem in error.problems))
        return NO_VERDICT
    sys.stdout.write(json.dumps(document, indent=1, sort_keys=True) + "\n" if options.json else text(document))
    return int(document["verdict"]["exit_code"])


def _judged(options: argparse.Namespace) -> Document:
    number = None if options.min_busbw is None else options.min_busbw
    refuse(Criteria(1.0 if number is None else number, options.pass_fraction).problems())
    if options.set and not options.node_class:
        refuse([Problem("--set", "no --class", "the class that is to be changed")])
    expected = Expected(ranks=options.ranks, nodes=options.nodes, allow_simulated=options.allow_simulated,
                        allow_socket=options.allow_socket)
    criteria = None if number is None else Criteria(number, options.pass_fraction)
    ask = Ask(criteria, expected=expected, nodes=options.nodes, pass_fraction=options.pass_fraction)
    if options.node_class:
        hardware, wanted = node_class(options.node_class, options.set)
        ask = Ask(criteria, hardware, wanted, expected, options.nodes, pass_fraction=options.pass_fraction)
    if options.log == "-":
        return of_log("standard input", judge_stream(sys.stdin.buffer, ask))
    try:
        with open(options.log, "rb") as stream:
            return of_log(Path(options.log).name, judge_stream(stream, ask))
    except OSError as error:
        raise AidcError([Problem(options.log, str(error.strerror), "a log that can be read", "- reads from the "
                                 "standard input")]) from error


def _reported(options: argparse.Namespace) -> Document:
    try:
        data = sys.stdin.buffer.read() if options.log == "-" else Path(options.log).read_bytes()
        return of_case(json.loads(data), options.allow_simulated)
    except OSError as error:
        raise AidcError([Problem(options.log, str(error.strerror), "a file that can be read")]) from error
    except (ValueError, KeyError, TypeError, AttributeError, CaseError, PlanError) as error:
        raise AidcError([Problem(options.log, str(error), "a stored search", "a log goes to: judge LOG")]) from error


def _write(path: str | None, content: str) -> None:
    if path:
        try:
            Path(path).write_text(content, encoding="utf-8")
        except OSError as error:
            raise AidcError([Problem(path, str(error.strerror), "a file that can be written")]) from error


def text(document: Document) -> str:
    """What a terminal shows."""
    verdict = document["verdict"]
    lines = [f"{verdict['label']}: {verdict['reason']}"]
    for one in document["limits"]:
        limit = one["limit"]
        if limit:
            lines.append(f"limit: {limit['busbw_gbps']:g} GB/s, {limit['pass_fraction']:.0%} needed "
                         f"({limit['rule']}; {one['reason']})")
    for one in document["causes"]:
        lines.append(f"{one['strength']}: {one['cause']} To do: {one['action']}")
    lines += [f"note: {one}" for one in document["not_judged"]]
    # A log may hold escape sequences for the terminal.
    return "".join("".join(char if char.isprintable() else "?" for char in line) + "\n" for line in lines)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
