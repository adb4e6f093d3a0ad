# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import reason
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.from_regex(r"[0-9A-Za-z][0-9A-Za-z._-]{0,12}", fullmatch=True)


@given(WORDS, st.none() | WORDS, st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1))
def test_what_is_written_is_read_back(source: str, run_id: str | None, text: str) -> None:
    assert not reason.problems_of(source, run_id, text)
    found = reason.parse(reason.format_reason(source, run_id, text))
    assert (found.kind, found.source, found.run_id, found.text) == ("ours", source, run_id or "", text)
    assert found.appended == ()


def test_the_token_of_the_agreed_example() -> None:
    found = reason.parse("aidc:gate:20261130T2200: rail 2 slow")
    assert (found.kind, found.source, found.run_id, found.text) == ("ours", "gate", "20261130T2200", "rail 2 slow")
    assert reason.parse("aidc:health: ports: mlx5_0 is DOWN").source == "health"
    assert reason.parse("aidc:health: ports: mlx5_0 is DOWN").run_id == ""


@pytest.mark.parametrize("raw", ["aidc: no source", "aidc:gate", "AIDC:gate: x", "NHC: aidc:gate: x",
                                 "broken fan : aidc:gate: x", "aidc:ga te: x", "note aidc:gate:r1: x"])
def test_what_only_looks_like_ours_is_somebody_elses(raw: str) -> None:
    assert reason.parse(raw).kind == "foreign"


@pytest.mark.parametrize("raw", [None, "", "none", "(null)", "  "])
def test_no_reason(raw: str | None) -> None:
    assert reason.parse(raw) == reason.Reason()


def test_appended_text() -> None:
    found = reason.parse("aidc:gate:r1: rail 2 slow : reboot issued : Kill task failed")
    assert (found.kind, found.text, found.base) == ("ours", "rail 2 slow", "aidc:gate:r1: rail 2 slow")
    assert found.appended == ("reboot issued", "Kill task failed")
    assert reason.blocking(found, invalid=False) == ["Kill task failed"]
    low = reason.parse("aidc:gate:r1: x : gres/gpu count reported lower than configured (2 < 4)")
    assert reason.blocking(low, invalid=True) and not reason.blocking(low, invalid=False)
    assert reason.blocking(reason.parse("aidc:gate: x : Not responding"), invalid=False) == []
    assert reason.blocking(reason.parse("aidc:gate: x : bob was here"), invalid=False) == ["bob was here"]


@pytest.mark.parametrize(("raw", "expected"), [
    ("gres/gpu count reported lower than configured (2 < 4)", [("gres/gpu", "2", "4")]),
    ("Low RealMemory (reported:100 < 95.00% of configured:24000), Low CPUs",
     [("RealMemory", "100 MiB", "at least 95.00 % of 24000 MiB"), ("CPUs", "less than configured",
                                                                   "CPUs of slurm.conf")]),
    ("gres/gpu:l40s count too low (1 < 2)", [("gres/gpu:l40s", "1", "2")]),
    ("Low socket*core*thread count", [("Sockets*CoresPerSocket*ThreadsPerCore", "less than configured",
                                       "the product in slurm.conf")]),
    ("Low RealMemory", [("RealMemory", "less than configured", "RealMemory of slurm.conf")]),
    ("aidc:gate:r1: rail 2 slow", []),
])
def test_registration(raw: str, expected: list[tuple[str, str, str]]) -> None:
    assert [tuple(one.values()) for one in reason.registration(raw)] == expected


@pytest.mark.parametrize(("source", "run_id", "text"), [
    ("", None, "x"), ("a:b", None, "x"), ("gate", "r:1", "x"), ("gate", None, " "), ("gate", None, "a : b"),
    ("gate", None, "two\nlines")])
def test_parts_that_make_no_reason(source: str, run_id: str | None, text: str) -> None:
    assert reason.problems_of(source, run_id, text)


def test_what_slurm_says() -> None:
    assert reason.what_of("Not responding") == "response"
    assert reason.what_of("reboot issued") == "reboot"
    assert reason.what_of("Low RealMemory (reported:1 < 1.00% of configured:2)") == "registration"
    assert reason.what_of("Prolog error") == "failure"
    assert reason.what_of("somebody") == "other"
