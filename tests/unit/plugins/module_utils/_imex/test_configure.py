# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Result and order of a call; what nodes get into is in test_rows.py."""
from __future__ import annotations

import errno
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import configure, io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import CONFIG_FILE, NODES_FILE, UNIT
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.model import Step

from tests.unit.plugins.fake import ok
from tests.unit.plugins.imex_node import CHANNEL, VERSION, nodes, settled, tray

KEYS = {"IMEX_NODE_CONFIG_FILE": NODES_FILE, "IMEX_CMD_ENABLED": "1"}


def test_the_whole_result(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)
    one.put(CHANNEL, "")
    found = one.call(nodes=["192.0.2.1"], may_join=True)
    assert found["before"] == {"active": "inactive", "enabled": False, "masked": False, "nodes": None,
                               "config": {**KEYS, "IMEX_CMD_ENABLED": "0"}}
    assert found["after"] == {"active": "active", "enabled": True, "masked": False, "nodes": ["192.0.2.1"],
                              "config": KEYS}
    assert found["diff"] == {"before": found["before"], "after": found["after"]}
    assert [step["disruptive"] for step in found["steps"]] == ["none"] * 4
    assert {key: found[key] for key in ("changed", "running", "version", "driver_version", "channels", "ready",
                                        "proven_nodes", "users_known", "findings", "deferred")} == {
        "changed": True, "running": True, "version": VERSION, "driver_version": VERSION, "channels": [CHANNEL],
        "ready": None, "proven_nodes": 0, "users_known": None, "findings": [], "deferred": []}


def test_what_else_is_in_config_is_not_shown(tmp_path: Path) -> None:
    """Keys of others may be secret."""
    one = tray(tmp_path, 1)
    one.put(CONFIG_FILE, "IMEX_PASSWORD=hunter2\n")
    assert "hunter2" not in str(one.call(nodes=["192.0.2.1"], may_join=True))
    assert "IMEX_PASSWORD=hunter2" in one.get(CONFIG_FILE)


@pytest.mark.parametrize("options", [
    {"state": "stopped"}, {"owner": "dra"}, {"state": "started"}, {"state": "resumed"}])
def test_check_mode_equals_the_run(tmp_path: Path, options: dict[str, t.Any]) -> None:
    (one, *_others) = trays = settled(tmp_path)
    if "owner" not in options and options["state"] != "stopped":
        one.change(active="inactive", enabled="disabled")
    given = {"nodes": nodes(trays), **options}
    predicted, real = one.call(True, **given), one.call(**given)
    assert predicted == real and real["changed"] is True
    assert one.call(**given)["changed"] is False


def test_a_question_takes_no_lock_and_a_change_does(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    lock = one.root / "run/lock/aidc.lock"
    lock.unlink()
    one.call(nodes=nodes(trays), state="ready")
    one.call(True, nodes=nodes(trays))
    assert not lock.exists()
    one.call(nodes=nodes(trays))
    assert lock.exists()


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon is not started with half of its files."""
    one = tray(tmp_path, 1)
    write = io.apply

    def apply(machine: t.Any, step: Step) -> t.Any:
        if step.command[1] == CONFIG_FILE:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(machine, step)

    monkeypatch.setattr(configure.io, "apply", apply)
    with pytest.raises(AidcError, match="No space left on device") as caught:
        one.call(nodes=["192.0.2.1"], may_join=True)
    assert caught.value.done == [["write", NODES_FILE]] and not one.ran("systemctl", "start")


def test_a_file_that_somebody_else_writes(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)

    def start(_call: tuple[str, ...]) -> t.Any:
        one.put(NODES_FILE, "192.0.2.7\n")
        one.change(active="active")
        return ok()

    one.override[("systemctl", "start")] = start
    with pytest.raises(AidcError) as caught:
        one.call(nodes=["192.0.2.1"], may_join=True)
    assert [problem.object for problem in caught.value.problems] == [NODES_FILE]


def test_a_unit_that_does_not_get_enabled(tmp_path: Path) -> None:
    one = tray(tmp_path, 1)
    one.override[("systemctl", "enable")] = lambda call: ok()
    with pytest.raises(AidcError) as caught:
        one.call(nodes=["192.0.2.1"], may_join=True)
    assert [(problem.object, problem.got) for problem in caught.value.problems] == [(UNIT, "enabled: False")]


def test_a_proof_of_the_same_node_is_bounded_by_its_tries(tmp_path: Path) -> None:
    (one, *_others) = trays = settled(tmp_path)
    trays[1].change(active="inactive")
    for seconds, tries in ((0, 1), (1, 1), (4, 3)):
        one.calls.clear()
        one.call(nodes=nodes(trays), state="ready", wait_seconds=seconds)
        assert len(one.ran("nvidia-imex-ctl", "-q")) == tries
