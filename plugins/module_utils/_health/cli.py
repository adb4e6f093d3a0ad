# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Command line of the health program: ``aidc-health run|prolog|check``; without a word, what slurmd wants of it."""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import socket
import sys
import typing as t
from pathlib import Path

from .._host.errors import AidcError, Problem
from .._host.files import read_text
from .._host.lock import file_lock
from .._host.machine import Machine
from .._slurm import node_parse, reason
from .._slurm.node_model import SlurmNode
from . import guard, io, plan
from .model import (
    CONFIG,
    EXIT_BAD,
    EXIT_NO_VERDICT,
    EXIT_OK,
    FILE_CHECKS,
    SOURCE,
    STATE,
    Action,
    Memory,
    Options,
    Result,
    Verdict,
    memory,
    options,
)

SCONTROL_SECONDS = 5.0
PROLOG_SECONDS = 10
AGAIN_SECONDS = 1.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        self.exit(EXIT_NO_VERDICT, f"{self.format_usage()}{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="aidc-health", description="Checks this node and drains it in Slurm if it is not healthy.",
                     epilog="Exit status: 0 healthy; 2 not healthy (a prolog: 1); 3 no verdict. slurmd gives no words "
                            "to the programs that it starts: as HealthCheckProgram it is run, as Prolog it is prolog; "
                            "by hand it is check.")
    parser.add_argument("verb", nargs="?", choices=["run", "prolog", "check"],
                        help="run: count, drain, resume; prolog: checks of files at once; check: change nothing")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--root", type=Path, default=Path("/"), help="a host's root directory, for tests")
    return parser


def verb_of(given: str | None, environment: t.Mapping[str, str]) -> str:
    """slurmd sets SLURM_SCRIPT_CONTEXT for a prolog [SchedMD slurm-24.11 prep_script_slurmd.c], and SLURMD_NODENAME for
    its HealthCheckProgram [slurmd.c, run_script_health_check]."""
    if given:
        return given
    if environment.get("SLURM_SCRIPT_CONTEXT") == "prolog_slurmd":
        return "prolog"
    return "run" if "SLURMD_NODENAME" in environment else "check"


def read_options(machine: Machine) -> Options:
    text = read_text(machine.path(CONFIG))
    try:
        return options(json.loads(text)) if text is not None else Options()
    except ValueError as error:
        raise AidcError([Problem(CONFIG, f"no JSON ({error})", "the program's options")]) from None


def _checked(machine: Machine, chosen: Options, names: t.Sequence[str], seconds: float) -> list[Result]:
    def work(told: io.Told, have: io.Have) -> None:
        io.make(machine, chosen, names, told, have)

    return guard.guarded(work, names, seconds) if names else []


def node(machine: Machine, name: str) -> SlurmNode:
    asked = machine.run(("scontrol", "-o", "show", "node", name), SCONTROL_SECONDS)
    bad: list[Problem] = []
    found = asked.parsed(node_parse.text_nodes, bad, f"the node {name}", "is it this node's name in Slurm?")
    if found is not None and len(found) == 1:
        return found[0]
    raise AidcError(bad or [Problem(name, "no such node", "this node's name in Slurm", "NodeName of slurm.conf")])


def _act(machine: Machine, name: str, action: Action) -> None:
    start = ("scontrol", "update", f"nodename={name}")
    words = ("state=resume",) if action.verb == "resume" else (
        "state=drain", f"reason={reason.format_reason(SOURCE, None, action.text)}")
    result = machine.run((*start, *words), SCONTROL_SECONDS)
    if result.state != "ok":
        raise AidcError([Problem(" ".join((*start, words[0])), result.why(), "success", "the next run tries again")])


def _say(verdict: Verdict, action: Action, trouble: t.Sequence[str], as_json: bool) -> None:
    if as_json:
        text = json.dumps({"results": [result.as_dict() for result in verdict.results], "failed": verdict.failed,
                           "action": action.verb, "why": action.text, "trouble": list(trouble)})
    else:
        lines = [f"{result.check}: {'ok' if result.ok else 'no verdict' if result.ok is None else 'failed'}"
                 + (f": {result.text}" if result.text else "") for result in verdict.results if not result.ok]
        text = "\n".join([*lines, *trouble, f"{action.verb}: {action.text}" if action.text else action.verb])
    sys.stdout.write(f"{text}\n")


def _told(machine: Machine, name: str, chosen: Options, verdict: Verdict, trouble: list[str]) -> Action:
    """Decide with the node's state as it is now, and do it."""
    try:
        action = plan.decide(chosen, node(machine, name), verdict)
        if action.verb != "none":
            _act(machine, name, action)
        return action
    except AidcError as error:
        trouble += [problem.text() for problem in error.problems]
        return Action("none", "slurmctld could not be asked or told")


def run(machine: Machine, name: str, chosen: Options, as_json: bool) -> int:
    trouble: list[str] = []
    before: Memory = memory(io.remembered(machine))
    verdict = plan.judge(chosen, before, _checked(machine, chosen, chosen.enabled, chosen.time_limit_seconds))
    why = io.remember(machine, verdict.memory)
    trouble += [why] if why else []
    action = _told(machine, name, chosen, verdict, trouble)
    _say(verdict, action, trouble, as_json)
    return EXIT_BAD if verdict.failed else EXIT_OK


def prolog(machine: Machine, name: str, chosen: Options, as_json: bool) -> int:
    """What only reads files, and what fails a second time after a moment: the job must not start here."""
    names = [check for check in FILE_CHECKS if check in chosen.enabled]
    results = _checked(machine, chosen, names, PROLOG_SECONDS)
    again = [result.check for result in results if result.ok is False]
    if again:
        machine.sleep(AGAIN_SECONDS)
        second = {result.check: result for result in _checked(machine, chosen, again, PROLOG_SECONDS)}
        results = [second.get(result.check, result) for result in results]
    verdict = plan.judge(plan.at_once(chosen), {}, results)
    if not verdict.failed:
        return EXIT_OK
    trouble: list[str] = []
    action = _told(machine, name, chosen, verdict, trouble)
    _say(verdict, action, trouble, as_json)
    return 1


def check(machine: Machine, chosen: Options, as_json: bool) -> int:
    results = _checked(machine, chosen, chosen.enabled, chosen.time_limit_seconds)
    verdict = plan.judge(plan.at_once(chosen), {}, results)
    _say(verdict, Action("none", "nothing was changed"), (), as_json)
    return EXIT_BAD if verdict.failed else EXIT_OK


def _locked(machine: Machine) -> contextlib.AbstractContextManager[None]:
    return file_lock(machine, machine.path(f"{STATE}.lock"), f"{STATE}.lock", "aidc-health run", 0.0)


def main(argv: t.Sequence[str] | None = None, machine: Machine | None = None,
         environment: t.Mapping[str, str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    environment = os.environ if environment is None else environment
    machine = machine or Machine(root=arguments.root, tool_timeout_seconds=SCONTROL_SECONDS)
    verb = verb_of(arguments.verb, environment)
    name = environment.get("SLURMD_NODENAME") or socket.gethostname().split(".")[0]
    try:
        chosen = read_options(machine)
        machine = dataclasses.replace(machine, tool_timeout_seconds=min(
            machine.tool_timeout_seconds, float(chosen.time_limit_seconds)))
        if verb == "check":
            return check(machine, chosen, arguments.json)
        if verb == "prolog":
            return prolog(machine, name, chosen, arguments.json)
        with _locked(machine):
            return run(machine, name, chosen, arguments.json)
    except (AidcError, OSError) as error:
        # No verdict is no reason to drain, nor to hold a job back.
        sys.stderr.write(f"aidc-health: {error}\n")
        return EXIT_OK if verb == "prolog" else EXIT_NO_VERDICT


if __name__ == "__main__":
    raise SystemExit(main())
