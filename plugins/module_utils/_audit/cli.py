# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The audit's command line, see docs/audit.md. Exit codes: 0 nothing found, 2 findings, 3 no verdict."""
from __future__ import annotations

import argparse
import json
import sys
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from . import expect, io, report

FINDINGS, NO_VERDICT = 2, 3


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        """argparse would exit with 2, which is a verdict here."""
        self.print_usage(sys.stderr)
        self.exit(NO_VERDICT, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="audit", description="Audit a fleet record. Exit: 0 nothing found, 2 findings, 3 no verdict.")
    parser.add_argument("state_dir", metavar="STATE_DIR", help="the folder of the fleet record (aidc_state_dir)")
    parser.add_argument("--expect", metavar="FILE", help=f"what the inventory says; by default STATE_DIR/{io.EXPECT}, "
                                                         "which playbooks/audit.yml writes")
    parser.add_argument("--fail-on", choices=["error", "warning", "note", "never"], default="error",
                        help="least severity for exit code 2 (error)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def main(argv: t.Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    folder, now = Path(options.state_dir), datetime.now(timezone.utc)
    path = Path(options.expect) if options.expect else folder / io.EXPECT
    try:
        wants = expect.load(json.loads(path.read_bytes()))
        if not folder.is_dir():
            raise expect.ExpectError(f"{folder}: got no folder, wanted the fleet record")
    except (OSError, ValueError, expect.ExpectError) as error:
        sys.stderr.write(f"audit: {path}: {error}\n")
        return NO_VERDICT
    document = io.audit(folder, wants, now)
    text = json.dumps(document, indent=1) if options.json else "\n".join(report.table(document))
    # A name in a record may hold escape sequences for the terminal.
    sys.stdout.write("".join(char if char.isprintable() or char == "\n" else "?" for char in text) + "\n")
    return FINDINGS if report.failing(document, options.fail_on) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
