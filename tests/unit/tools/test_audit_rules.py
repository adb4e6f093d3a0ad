# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/audit.md has the rules as they are."""
from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils._audit.evaluate import ALL_RULES
from tools import audit_rules


def test_the_page_is_of_now() -> None:
    text = audit_rules.PAGE.read_text(encoding="utf-8")
    assert audit_rules.page(text) == text, "run tools/audit_rules.py"
    assert all(f"| `{rule.id}` | {rule.severity} |" in text for rule in ALL_RULES)
    assert "{" not in audit_rules.table()


def test_it_writes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "audit.md"
    page.write_text(f"head\n{audit_rules.START}\nold\n{audit_rules.END}\nfoot\n", encoding="utf-8")
    monkeypatch.setattr(audit_rules, "PAGE", page)
    assert audit_rules.main() == 0
    wanted = f"head\n{audit_rules.START}\n{audit_rules.table()}\n{audit_rules.END}\nfoot\n"
    assert page.read_text(encoding="utf-8") == wanted
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit):
        audit_rules.main()
