# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.faults import watch


@pytest.mark.parametrize(("line", "login"), [
    ("sshd-session: ops@notty", True), ("sshd-session: ops@pts/0", True), ("sshd: ops@notty", True),
    ("sshd-session: ops [priv]", False), ("sshd-session: unknown [net]", False), ("sshd: [accepted]", False),
    ("sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", False), ("grep sshd: ops@notty", False),
])
def test_which_process_is_a_login(line: str, login: bool) -> None:
    assert watch.is_login(["sshd-session", line]) is login


def test_names_are_cut_as_the_kernel_does() -> None:
    matches = watch.is_program(["prterun", "all_reduce_perf_long"])
    assert matches(["prterun", ""]) and matches(["all_reduce_perf", ""])
    assert not matches(["mpirun", ""]) and not matches([])


def looks(story: list[dict[int, str]], count: int) -> int:
    """How many looks it takes until ``watch.wait`` is satisfied by a story of process tables."""
    at = [0]

    def pause() -> None:
        at[0] += 1

    watch.wait(lambda: story[at[0]], lambda pid: [story[at[0]].get(pid, "")], lambda words: words == ["x"], count,
               pause)
    return at[0]


def test_the_moment() -> None:
    assert looks([{1: "init"}, {1: "init", 2: "sh"}, {1: "init", 2: "x"}], 1) == 2, "a process that becomes it by exec"
    assert looks([{5: "x"}, {5: "x"}, {5: "x", 6: "x"}], 1) == 2, "one that was there does not count"
    assert looks([{}, {2: "x"}, {}, {2: "x"}], 2) == 3, "the same number used again counts"
    assert looks([{}, {2: "x", 3: "x"}], 2) == 1
    with pytest.raises(IndexError):
        looks([{}, {2: "x"}, {2: "x"}], 2)
