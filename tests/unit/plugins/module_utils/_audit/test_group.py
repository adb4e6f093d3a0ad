# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in short, and equal findings as one."""
from __future__ import annotations

import pytest

from plugins.module_utils._audit.evaluate import ALL_RULES
from plugins.module_utils._audit.group import SHOWN, Issue, compress, group

RULE = next(rule for rule in ALL_RULES if rule.id == "mtu-running")
ORDER = {f"n{number:02}": number for number in range(1, 40)}


@pytest.mark.parametrize(("names", "text"), [
    ([], ""), (["gb1"], "gb1"), (["gb1", "gb2", "gb3"], "gb[1-3]"),
    (["gb1-01", "gb1-02", "gb2-01"], "gb1-[01-02],gb2-01"),
    (["n9", "n10"], "n9,n10"), (["n09", "n10", "n12"], "n[09-10,12]"), (["head", "n1"], "head,n1"),
    (["r1n2.example", "r1n3.example"], "r1n[2-3].example"), (["r2n1", "r1n1", "r2n2"], "r2n[1-2],r1n1"),
])
def test_compress(names: list[str], text: str) -> None:
    assert compress(names) == text


def issue(host: str | None, rail: int | None = 0, got: str = "netdev MTU 1500") -> Issue:
    return Issue(RULE, "gb200", host, rail, got, "4200", "ens1")


def test_hosts_with_one_and_the_same_are_one_finding_in_the_order_of_the_inventory() -> None:
    (one,) = group([issue("n03"), issue("n01"), issue("n02")], ORDER)
    assert (one.hosts, one.rail, one.evidence[0]) == (("n01", "n02", "n03"), 0, "n01 rail 0: netdev MTU 1500 (ens1)")


def test_another_value_is_another_finding() -> None:
    assert len(group([issue("n01"), issue("n02", got="netdev MTU 9000")], ORDER)) == 2


def test_all_rails_of_the_same_hosts_are_one_finding_without_a_rail() -> None:
    (one,) = group([issue(host, rail) for host in ("n01", "n02") for rail in (0, 1)], ORDER)
    assert (one.hosts, one.rail, len(one.evidence)) == (("n01", "n02"), None, 4)
    assert [finding.rail for finding in group([issue("n01", 0), issue("n01", 1), issue("n02", 1)], ORDER)] == [0, 1]


def test_evidence_of_many_is_cut() -> None:
    (one,) = group([issue(name) for name in ORDER], ORDER)
    assert len(one.evidence) == SHOWN + 1
    assert one.evidence[-1] == f"and {len(ORDER) - SHOWN} more places"


def test_nobody_is_blamed_for_a_split() -> None:
    (one,) = group([issue(None, None, "split: a: n01; b: n02")._replace(detail="")], ORDER)
    assert (one.hosts, one.evidence) == ((), ("split: a: n01; b: n02",))
