# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Command line of the boot tool: ``aidc-fabric apply``, ``aidc-fabric --check``."""
from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import typing as t
from pathlib import Path

from .._host.errors import AidcError
from .._host.machine import Machine
from .._intent import io as intent_io
from .._intent.model import PATH, Intent
from . import io, plan
from .model import EXIT_DIFFERS, EXIT_NO_VERDICT, EXIT_OK, SCHEMA_VERSION, Reason, Round


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        self.exit(EXIT_NO_VERDICT, f"{self.format_usage()}{self.prog}: {message}\n")


def _reason(text: str) -> Reason:
    kind, _colon, netdev = text.partition(":")
    if (kind == "udev") != bool(netdev) or kind not in ("boot", "udev", "hand"):
        raise argparse.ArgumentTypeError(f"got {text!r}, wanted boot, hand or udev:NETDEV")
    return Reason(kind, netdev)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="aidc-fabric", description=f"Sets the ports of this host as {PATH} says.",
                     epilog="Exit status: 0 nothing differs or all was put right; 2 something differs or could not be "
                            "put right; 3 no verdict: no intent, or one that cannot be read, or a wrong command.")
    parser.add_argument("verb", nargs="?", choices=["apply"], help="set what differs")
    parser.add_argument("--check", action="store_true", help="tell what differs and change nothing")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--reason", type=_reason, default=Reason("hand"), metavar="boot|udev:NETDEV",
                        help="why it runs; with udev another port that is not there is no difference")
    parser.add_argument("--root", type=Path, default=Path("/"), help="a host's root directory, for tests")
    return parser


def _say(text: str) -> None:
    # Line by line, so that the journal has each step at its time.
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _report(found: Round, intent: Intent, reason: Reason, check_mode: bool, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({
            "schema_version": SCHEMA_VERSION, "intent": {"time": intent.time, "run_id": intent.run_id},
            "done": [{"section": deed.section, "command": list(deed.command), "why": deed.why} for deed in found.done],
            "drift": [drift.as_dict() for drift in found.drift]}))
        return
    for drift in found.drift:
        fix = f"; would run: {' '.join(drift.command)}" if drift.command else ""
        _say(f"{reason}: {'differs' if check_mode else 'still differs'}: {drift.text()}{fix}")
    if not found.done and not found.drift:
        _say(f"{reason}: nothing differs from the intent of {intent.time}")


def _run(machine: Machine, intent: Intent, reason: Reason, check_mode: bool, as_json: bool) -> Round:
    if check_mode:
        return io.one_round(machine, intent, reason, True)
    return io.apply(machine, intent, reason, lambda deed: None if as_json else _say(f"{reason}: {deed.text()}"))


def main(argv: t.Sequence[str] | None = None, machine: Machine | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.check == (arguments.verb == "apply"):
        parser.error("got neither or both, wanted apply or --check")
    machine = machine or Machine(root=arguments.root)
    try:
        intent = intent_io.read(machine)
    except AidcError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_NO_VERDICT
    if intent is None:
        sys.stderr.write(f"{PATH}: got no file, wanted the host's intent (run playbooks/fabric.yml)\n")
        return EXIT_NO_VERDICT
    reason: Reason = arguments.reason
    if reason.kind == "udev":
        reason = dataclasses.replace(reason, port=io.device_of(machine, reason.netdev))
        if reason.port not in plan.wanted_ports(intent):
            # Functions and representors of other use come and go.
            _say(f"{reason}: no port of the intent")
            return EXIT_OK
    try:
        found = _run(machine, intent, reason, arguments.check, arguments.json)
    except AidcError as error:
        # The lock is somebody's for too long.
        sys.stderr.write(f"{error}\n")
        return EXIT_DIFFERS
    _report(found, intent, reason, arguments.check, arguments.json)
    return EXIT_DIFFERS if found.drift else EXIT_OK


if __name__ == "__main__":
    raise SystemExit(main())
