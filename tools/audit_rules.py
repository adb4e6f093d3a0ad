#!/usr/bin/env python3
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of rules in docs/audit.md, from the rules themselves.

    PYTHONPATH=. python tools/audit_rules.py    # writes it; a test compares
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

from plugins.module_utils._audit.evaluate import ALL_RULES
from plugins.module_utils._audit.model import Rule

PAGE = Path(__file__).resolve().parents[1] / "docs" / "audit.md"
START, END = "<!-- rules: made by tools/audit_rules.py -->", "<!-- end of rules -->"


def _words(text: str) -> str:
    """A format as a reader likes it."""
    text = re.sub(r"\{(?:want_)?(\w+)(?::\w+)?\}", lambda found: "*" + found[1].replace("_", " ") + "*", text)
    return text.replace("|", "\\|")


def _row(rule: Rule) -> str:
    return (f"| `{rule.id}` | {rule.severity} | {_words(rule.got)} | {_words(rule.wanted)} | {_words(rule.fix)} | "
            f"{_words(rule.source)} |")


def table() -> str:
    head = ["| rule | severity | found | wanted | fix | source |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *map(_row, ALL_RULES)])


def page(text: str) -> str:
    """The page with the table of now."""
    before, _start, rest = text.partition(START)
    _old, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE}: got no lines {START} and {END}")
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> int:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
