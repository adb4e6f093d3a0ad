# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arm, cancel, undo at once, and what an earlier call left."""
from __future__ import annotations

import dataclasses
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError, Problem
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._mlx5.model import Request, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert import io, states
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._revert.model import FOLDER, Undo

from tests.unit.plugins.fake import FakeNode, failed, ok

PATH = "/etc/systemd/network/20-rail0.network"
CALL = io.Call("mlx5_port", "d1", 60.0)
UNDO = Undo((PATH, "/etc/new"), (("networkctl", "reload"),), ("rail0",))


@pytest.fixture
def host(node: FakeNode) -> FakeNode:
    node.override[("systemd-run",)] = lambda call: ok()
    node.override[("systemctl", "stop")] = lambda call: ok()
    node.override[("ip", "-j", "-4", "route", "show", "table")] = lambda call: ok("[]")
    node.override[("ip", "-j", "-6", "route", "show", "table")] = lambda call: ok("[]")
    node.override[("ip", "addr", "replace")] = node.override[("ip", "link", "set")] = lambda call: ok()
    plain = node.run

    def run(argv: t.Sequence[str], seconds: float) -> Result:
        if tuple(argv[:2]) == ("systemctl", "is-active") and argv[2].startswith("aidc-revert-"):
            node.calls.append(tuple(argv))
            return ok("active\n")
        return plain(argv, seconds)

    node.run = run  # type: ignore[method-assign,assignment]
    node.link_fields["rail0"] = {"mtu": 1500, "flags": ["UP"], "addr_info": [
        {"local": "198.51.100.1", "prefixlen": 24, "scope": "global"}]}
    return node


def called(node: FakeNode, word: str) -> list[tuple[str, ...]]:
    return [call for call in node.calls if word in call]


def test_the_state_is_saved_and_the_timer_set_before_the_first_write(host: FakeNode) -> None:
    old = host.get(PATH) + "\n"
    with io.guarded(host.machine(), CALL, UNDO) as armed:
        (record,) = armed
        folder = host.root / FOLDER[1:]
        assert folder.stat().st_mode & 0o777 == 0o700
        saved = json.loads((folder / f"{record.id}.json").read_text(encoding="utf-8"))
        assert [(file["path"], file["text"]) for file in saved["files"]] == [
            (PATH, old), ("/etc/new", None), ("/etc/aidc/intent.json", None)]
        assert saved["links"] == [["ip", "link", "set", "dev", "rail0", "mtu", "1500"],
                                  ["ip", "link", "set", "dev", "rail0", "up"],
                                  ["ip", "addr", "replace", "198.51.100.1/24", "dev", "rail0"]]
        program = (folder / f"{record.id}.py").read_text(encoding="utf-8")
        assert "def restore(" in program and (folder / f"{record.id}.py").stat().st_mode & 0o777 == 0o600
        (call,) = called(host, "systemd-run")
        assert f"--unit=aidc-revert-{record.id}" in call and "--on-active=60" in call and record.timer == "systemd"
        host.now = 50.0
    # The time counts from the last write.
    assert io.records(host.machine())[0].deadline == 110.0


def test_a_unit_of_the_next_boot_is_there_as_long_as_the_timer(host: FakeNode) -> None:
    (host.root / "run/systemd/system").mkdir(parents=True)
    host.override[("systemctl", "daemon-reload")] = lambda call: ok()
    host.put("/proc/sys/kernel/random/boot_id", "b1")
    units = host.root / "etc/systemd/system"
    with io.guarded(host.machine(), CALL, UNDO) as armed:
        (record,) = armed
        name = f"aidc-revert-{record.id}-boot.service"
        text = (units / "sysinit.target.wants" / name).read_text(encoding="utf-8")
        program = host.root / FOLDER[1:] / record.id
        assert f"-I {program}.py {program}.json --boot\n" in text and "Before=network-pre.target" in text
        assert json.loads(Path(f"{program}.json").read_text(encoding="utf-8"))["boot_id"] == "b1"
    assert (units / name).is_file()
    io.cancel(host.machine(), None)
    assert [path for path in units.rglob("*revert*")] == [] and list(program.parent.iterdir()) == []


def test_without_need_nothing_is_armed(host: FakeNode) -> None:
    for call, wanted in ((CALL, None), (dataclasses.replace(CALL, seconds=0), UNDO)):
        with io.guarded(host.machine(), call, wanted) as armed:
            assert armed == []
    assert not (host.root / FOLDER[1:]).exists() and host.calls == []


def test_without_systemd_a_process_waits(host: FakeNode) -> None:
    host.override[("systemd-run",)] = lambda call: failed(1, "System has not been booted with systemd")
    host.override[("setsid", "--fork")] = lambda call: ok()
    with io.guarded(host.machine(), CALL, UNDO) as armed:
        assert armed[0].timer == "process" and len(called(host, "setsid")) == 1


@pytest.mark.parametrize("broken", ["timer", "addresses", "folder"])
def test_what_cannot_be_armed_is_not_changed(host: FakeNode, broken: str) -> None:
    if broken == "timer":
        for name in ("systemd-run", "setsid"):
            host.override[(name,)] = lambda call: Result((), "missing")
    if broken == "addresses":
        host.override[("ip", "-d", "-j", "addr")] = lambda call: ok("garbage")
    if broken == "folder":
        host.put("/var/lib/aidc", "a file in the way")
    with pytest.raises(AidcError, match=r"Nothing was changed\.") as caught, \
            io.guarded(host.machine(), CALL, UNDO):
        raise AssertionError
    assert caught.value.problems and io.records(host.machine()) == []


def test_an_error_after_the_first_write_is_undone_at_once(host: FakeNode) -> None:
    old = host.get(PATH)
    with pytest.raises(AidcError, match="restored on the host") as caught, \
            io.guarded(host.machine(), CALL, UNDO):
        host.put(PATH, "new\n")
        host.put("/etc/new", "new\n")
        raise AidcError([Problem("x", "y", "z")], [("write", PATH)])
    assert caught.value.problems[0] == Problem("x", "y", "z") and caught.value.done == [["write", PATH]]
    assert host.get(PATH) == old and not (host.root / "etc/new").exists()
    assert ("networkctl", "reload") in host.calls and called(host, "replace") and called(host, "stop")
    assert io.records(host.machine()) == [] and io.left_behind(host.machine(), CALL, False) == []


class Killed(BaseException):
    pass


def test_killed_in_the_middle_the_record_stays(host: FakeNode) -> None:
    with pytest.raises(Killed), io.guarded(host.machine(), CALL, UNDO):
        raise Killed
    (record,) = io.records(host.machine())
    assert (record.state, record.deadline) == ("armed", 60.0)
    # The next run shows it to its controller, which cancels it.
    assert io.left_behind(host.machine(), CALL, False) == [record]
    assert io.left_behind(host.machine(), io.Call("roce_qos", "d1", 60.0), False) == []


def test_a_second_change_keeps_the_older_state(host: FakeNode) -> None:
    old = host.get(PATH)
    with pytest.raises(Killed), io.guarded(host.machine(), CALL, UNDO):
        host.put(PATH, "half\n")
        raise Killed
    more = Undo((PATH, "/etc/more"), (("x", "y"),), ())
    with io.guarded(host.machine(), CALL, more):
        pass
    (record,) = io.records(host.machine())
    assert {file["path"]: (file["text"] or "").strip() for file in record.files}[PATH] == old
    assert record.commands == (("x", "y"), ("networkctl", "reload")) and len(record.links) == 3


def undone(host: FakeNode, **fields: t.Any) -> None:
    with io.guarded(host.machine(), CALL, UNDO):
        pass
    (record,) = io.records(host.machine())
    io._save(host.machine(), dataclasses.replace(record, state="undone", undone_at="2026-11-30T12:00:00Z", **fields))


def test_what_was_undone_is_told_once(host: FakeNode) -> None:
    undone(host, problems=("networkctl reload: broken",))
    for check_mode in (True, False):
        with pytest.raises(AidcError, match=r"undone on the host at 2026-11-30T12:00:00Z because the controller did "
                           r"not come back within 60 s; not all could be restored: networkctl reload: broken"):
            io.left_behind(host.machine(), CALL, check_mode)
    assert io.left_behind(host.machine(), CALL, False) == []


def test_other_values_are_no_error(host: FakeNode) -> None:
    undone(host)
    other = dataclasses.replace(CALL, digest="d2")
    assert io.left_behind(host.machine(), other, True) == [] and len(io.records(host.machine())) == 1
    assert io.left_behind(host.machine(), other, False) == [] and io.records(host.machine()) == []


def test_the_digest_is_of_what_is_wanted() -> None:
    request = Request((Want("0000:03:00.0", 4200),), allow_management=True)
    call = io.call_of("mlx5_port", dataclasses.replace(request, revert_seconds=30))
    assert call.seconds == 30 and call.digest == io.call_of("mlx5_port", request).digest
    assert call.digest != io.call_of("mlx5_port", Request((Want("0000:03:00.0", 9000),))).digest


def test_the_time_of_a_request() -> None:
    request = Request(())
    assert io.armed_request(request, {"allow_management": False, "revert_seconds": 60}).revert_seconds == 0
    assert io.armed_request(request, {"allow_management": True, "revert_seconds": 60}).revert_seconds == 60
    with pytest.raises(AidcError, match="revert_seconds: got 4, wanted at least 5"):
        io.armed_request(request, {"allow_management": True, "revert_seconds": 4})


def test_a_broken_record_is_no_record(host: FakeNode) -> None:
    host.put(f"{FOLDER}/x.json", "{")
    host.put(f"{FOLDER}/y.json", '{"id": "y"}')
    assert io.records(host.machine()) == [] and io.public([]) is None


def test_armed_revert(host: FakeNode) -> None:
    with io.guarded(host.machine(), CALL, UNDO):
        pass
    status = states.perform(host.machine(), "status", None, False)
    assert (status["changed"], status["commands"], status["before"][0]["state"]) == (False, [], "armed")
    assert "files" not in status["before"][0]
    predicted = states.perform(host.machine(), "cancelled", "mlx5_port", True)
    assert len(io.records(host.machine())) == 1
    assert states.perform(host.machine(), "cancelled", "roce_qos", False)["changed"] is False
    assert states.perform(host.machine(), "cancelled", "mlx5_port", False) == predicted
    assert (predicted["changed"], predicted["after"]) == (True, [])
    assert not list((host.root / FOLDER[1:]).iterdir()) and called(host, "stop")
    assert states.perform(host.machine(), "cancelled", None, False)["changed"] is False


def test_a_call_without_a_controller_leaves_the_note(host: FakeNode) -> None:
    """Such as that of a boot, which would else swallow what the operator must know."""
    undone(host)
    assert io.left_behind(host.machine(), dataclasses.replace(CALL, seconds=0), False) == []
    assert len(io.records(host.machine())) == 1
