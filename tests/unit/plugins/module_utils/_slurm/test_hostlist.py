# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.hostlist import (
    MAX_NAMES,
    HostlistError,
    compress,
    expand,
)
from hypothesis import given, settings
from hypothesis import strategies as st

# Both directions agree on these.
SAME = [
    ("", []),
    ("login", ["login"]),
    ("gb200-r01-t[01-03,07]", ["gb200-r01-t01", "gb200-r01-t02", "gb200-r01-t03", "gb200-r01-t07"]),
    ("n[8-11]", ["n8", "n9", "n10", "n11"]),
    ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ("n[098-101]", ["n098", "n099", "n100", "n101"]),
    ("n[1,02]", ["n1", "n02"]),
    ("n[9,010]", ["n9", "n010"]),
    ("a1,b1,a2", ["a1", "b1", "a2"]),
    ("n[3,2,1]", ["n3", "n2", "n1"]),
    ("n[1,1]", ["n1", "n1"]),
    ("gb1-01,login,gb1-02", ["gb1-01", "login", "gb1-02"]),
    ("a,b", ["a", "b"]),
    ("n1.site.example,n2.site.example", ["n1.site.example", "n2.site.example"]),
    ("[1-2]", ["1", "2"]),
    ("n[0-2]", ["n0", "n1", "n2"]),
]


@pytest.mark.parametrize(("text", "names"), SAME)
def test_both_directions(text: str, names: list[str]) -> None:
    assert expand(text) == names
    assert compress(names) == text


@pytest.mark.parametrize(("text", "names"), [
    ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
    ("n[1-2].site", ["n1.site", "n2.site"]),
    (" n1 , n[2 , 3-4] ", ["n1", "n2", "n3", "n4"]),
    ("n[1-3,2]", ["n1", "n2", "n3", "n2"]),
])
def test_what_is_only_read(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(("text", "words"), [
    ("n[1-2", "not closed"), ("n1-2]", "do not match"), ("n[[1]]", "do not match"), ("n[]", "wanted numbers"),
    ("n[1-]", "wanted numbers"), ("n[a-b]", "wanted numbers"), ("n[3-1]", "smaller number first"),
    ("a,,b", "got the name ''"), ("a b", "got the name 'a b'"), ("-n1", "got the name"), ("n;1", "got the name"),
    ("n[1-99999999]", "more than"), ("r[1-9999]n[1-9999]", "more than"), ("n[1-2]]", "do not match"),
])
def test_what_is_no_host_list(text: str, words: str) -> None:
    with pytest.raises(HostlistError, match=words):
        expand(text)


def test_all_parts_together_have_a_limit() -> None:
    with pytest.raises(HostlistError, match=f"more than {MAX_NAMES}"):
        expand(f"a[1-{MAX_NAMES - 1}],b[1-2]")


@pytest.mark.parametrize("name", ["", "a b", "n[1]", "a,b", 7, None])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(HostlistError, match="got the name"):
        compress([name])


def test_the_order_is_kept_unless_sorting_is_asked_for() -> None:
    names = ["n10", "n2", "m1", "n1", "n2"]
    assert compress(names) == "n[10,2],m1,n[1-2]"
    assert compress(names, sort=True) == "m1,n[1-2,10]"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.from_regex(r"[a-c]{0,2}[0-9]{1,3}|[a-c]-[0-9]{1,2}[a-c]?|[a-c]", fullmatch=True), max_size=30))
def test_nothing_is_lost(names: list[str]) -> None:
    assert expand(compress(names)) == names
    assert sorted(expand(compress(names, sort=True))) == sorted(set(names))


def _seconds(count: int) -> float:
    names = [f"gb{rack:03d}-{tray:02d}" for rack in range(1, count // 18 + 1) for tray in range(1, 19)]
    start = time.process_time()
    assert expand(compress(names)) == names
    return time.process_time() - start


def test_ten_thousand_names_are_linear() -> None:
    small, large = min(_seconds(1_800) for _ in range(3)), min(_seconds(18_000) for _ in range(3))
    assert large < 3
    assert large < 30 * small, f"{small:.3f} s for 1,800 names, {large:.3f} s for 18,000"
