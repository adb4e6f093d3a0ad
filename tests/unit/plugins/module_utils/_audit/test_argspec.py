# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from plugins.module_utils._audit.argspec import AUDIT
from plugins.module_utils._audit.model import SEVERITIES


def test_severities_are_those_of_the_rules() -> None:
    assert AUDIT["fail_on"]["choices"] == [*SEVERITIES, "never"]
