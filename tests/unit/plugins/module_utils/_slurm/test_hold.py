# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import hold_argspec, hold_plan
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.hold_configure import configure

from .fake_reservations import LINE, FakeReservations


class Slurm(FakeReservations):
    def call(self, check_mode: bool = False, **options: t.Any) -> dict[str, t.Any]:
        defaults = {name: option.get("default") for name, option in hold_argspec.spec().items()}
        params = {**defaults, "purpose": "gate-gb200", "run_id": "r2", "nodes": ["n[1-3]"], **options}
        return configure(self.machine(), hold_argspec.request(params), check_mode)


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    return Slurm(tmp_path)


def test_check_mode_then_run_then_nothing_then_given_back(slurm: Slurm) -> None:
    predicted = slurm.call(check_mode=True)
    assert slurm.writes() == []
    real = slurm.call(users=["root"])
    assert predicted["commands"] == real["commands"] == [[
        "scontrol", "create", "reservation", "ReservationName=aidc.gate-gb200.r2", "StartTime=now", "Duration=60",
        "Users=root", "Nodes=n[1-3]"]]
    assert predicted["changed"] is real["changed"] is True and real["name"] == "aidc.gate-gb200.r2"
    assert all([one["nodes"] for one in found["after"]] == [["n1", "n2", "n3"]] for found in (real, predicted))
    again = slurm.call(nodes=["n3", "n1", "n2", "n1"])
    assert (again["changed"], again["commands"], again["after"]) == (False, [], real["after"])
    gone = slurm.call(state="absent", nodes=[])
    assert gone["commands"] == [["scontrol", "delete", "ReservationName=aidc.gate-gb200.r2"]] and slurm.held == {}
    assert slurm.call(state="absent", nodes=[])["changed"] is False


def test_what_a_killed_run_left_is_removed_and_nothing_else(slurm: Slurm) -> None:
    slurm.held = {"aidc.gate-gb200.r1": ("n[1-3]", "root"), "aidc.gate-gb200-b.r1": ("n7", "root"),
                  "aidc.gate.r1": ("n8", "root"), "weekend": ("n9", "alice")}
    done = slurm.call()
    assert [command[1:] for command in done["commands"]][0] == ["delete", "ReservationName=aidc.gate-gb200.r1"]
    assert set(slurm.held) == {"aidc.gate-gb200.r2", "aidc.gate-gb200-b.r1", "aidc.gate.r1", "weekend"}
    assert {one["name"] for one in done["after"]} == set(slurm.held) - {"weekend"}
    slurm.held["aidc.gate-gb200.r3"] = ("n5", "root")
    assert len(slurm.call(state="absent", run_id="", nodes=[])["commands"]) == 2
    assert set(slurm.held) == {"aidc.gate-gb200-b.r1", "aidc.gate.r1", "weekend"}


def test_other_nodes_or_users_make_a_new_one(slurm: Slurm) -> None:
    slurm.call()
    assert [command[1] for command in slurm.call(nodes=["n1", "n2"])["commands"]] == ["delete", "create"]
    assert [command[1] for command in slurm.call(nodes=["n1", "n2"], users=["ops"])["commands"]] == ["delete", "create"]
    assert slurm.held == {"aidc.gate-gb200.r2": ("n[1-2]", "ops")}


def test_jobs_in_the_way_are_named(slurm: Slurm) -> None:
    slurm.jobs = {"n2": "4242 alice", "n3": "4243 bob"}
    with pytest.raises(AidcError, match=r"aidc.gate-gb200.r2: got job 4242 of alice on n2; job 4243 of bob on n3, "
                                        r"wanted nodes without jobs"):
        slurm.call()
    assert slurm.held == {}


def test_a_reservation_of_somebody_else_is_named_and_stays(slurm: Slurm) -> None:
    slurm.held = {"weekend": ("n2", "alice")}
    with pytest.raises(AidcError, match=r"overlaps with another reservation.*scontrol show reservation"):
        slurm.call()
    assert set(slurm.held) == {"weekend"}


def test_success_without_effect_is_found(slurm: Slurm) -> None:
    slurm.lies = True
    with pytest.raises(AidcError, match=r"got no such reservation, wanted nodes n\[1-3\]"):
        slurm.call()
    slurm.held = {"aidc.gate-gb200.r2": ("n1", "root")}
    with pytest.raises(AidcError, match=r"got still there, wanted no such reservation"):
        slurm.call(state="absent", nodes=[])


@pytest.mark.parametrize(("options", "words"), [
    ({"purpose": "a.b"}, "purpose: got 'a.b'"), ({"run_id": ""}, "run_id: got ''"),
    ({"run_id": "a b"}, "run_id: got 'a b'"),
    ({"nodes": []}, "nodes: got none"), ({"users": []}, "users: got none"), ({"users": ["a,b"]}, "users: got 'a,b'"),
    ({"minutes": 0}, "minutes: got 0"), ({"minutes": 1441}, "minutes: got 1441")])
def test_bad_input_is_named_before_anything_is_asked(slurm: Slurm, options: dict[str, t.Any], words: str) -> None:
    with pytest.raises(AidcError) as caught:
        slurm.call(**options)
    assert words in str(caught.value) and slurm.calls == []


def test_no_answer_and_garbage(slurm: Slurm) -> None:
    run = slurm.run
    for result in (Result((), "failed", 1, "", "slurm_load_reservations error: Unable to contact slurm controller"),
                   Result((), "timeout"), Result((), "missing"), Result((), "ok", 0, "what?\n")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(slurm, "run", lambda argv, timeout, result=result: replace(
                result, argv=tuple(argv)) if "-o" in argv else run(argv, timeout))
            with pytest.raises(AidcError, match="scontrol -o show reservation"):
                slurm.call()
    assert slurm.writes() == []


def test_a_value_with_blanks_and_equal_signs_ends_at_the_next_key() -> None:
    text = LINE.format(name="x", nodes="n[1-2],m", users="(null)").replace("TRES=cpu=208", "TRES=cpu=208,gres/gpu=8")
    assert [one.as_dict() for one in hold_plan.parse(text)] == [
        {"name": "x", "nodes": ["m", "n1", "n2"], "users": [], "start": "2026-12-01T01:45:38",
         "end": "2026-12-01T01:50:38", "state": "ACTIVE"}]
