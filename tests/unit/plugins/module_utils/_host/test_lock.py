# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json
import os
import pwd
import subprocess
import sys
import time

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host import lock
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.lock import LOCK_FILE, host_lock

from tests.unit.plugins.fake import FakeNode


def test_the_file_names_the_holder_while_it_is_held(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    with host_lock(node.machine(), "mlx5_port"):
        holder = json.loads(node.get(LOCK_FILE))
    assert (holder["pid"], holder["user"], holder["what"]) == (1, "alice", "mlx5_port")
    assert node.get(LOCK_FILE) == ""
    assert (node.root / LOCK_FILE[1:]).stat().st_mode & 0o777 == 0o600


def test_a_second_one_waits_and_then_names_the_holder(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    with (
        host_lock(node.machine(), "mlx5_port"), pytest.raises(AidcError) as caught,
        host_lock(node.machine(), "other", wait_seconds=3),
    ):
        pass
    assert "held by pid 1 of alice (mlx5_port) since 20" in str(caught.value)
    assert "Nothing was changed" in str(caught.value)
    assert node.now == pytest.approx(3, abs=0.3)


def test_the_boot_tool_is_waited_for(node: FakeNode) -> None:
    with (
        host_lock(node.machine(), "aidc-fabric boot"), pytest.raises(AidcError, match="aidc-fabric boot"),
        host_lock(node.machine(), "roce_qos"),
    ):
        pass
    assert node.now == pytest.approx(lock.BOOT_SECONDS, abs=0.3)


def test_a_caller_that_holds_it_already(node: FakeNode) -> None:
    locked = dataclasses.replace(node.machine(), locked=True)
    with host_lock(node.machine(), "outer"), host_lock(locked, "inner", wait_seconds=0):
        assert json.loads(node.get(LOCK_FILE))["what"] == "outer"


def test_it_is_free_again_after_an_error(node: FakeNode) -> None:
    with pytest.raises(RuntimeError), host_lock(node.machine(), "a"):
        raise RuntimeError
    with host_lock(node.machine(), "b", wait_seconds=0):
        pass


def test_it_is_free_again_when_the_holder_was_killed(node: FakeNode) -> None:
    path = node.root / LOCK_FILE[1:]
    path.parent.mkdir(parents=True)
    path.write_text("not json", encoding="utf-8")
    code = ("import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); "
            "print(1, flush=True); time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(AidcError, match="a holder that left no name"), host_lock(node.machine(), "a", 0):
            pass
        process.kill()
    time.sleep(0.05)
    with host_lock(node.machine(), "a", 0):
        pass


def test_a_link_is_not_followed(node: FakeNode) -> None:
    path = node.root / LOCK_FILE[1:]
    path.parent.mkdir(parents=True)
    path.symlink_to(node.root / "elsewhere")
    with pytest.raises(AidcError, match="not a plain file"), host_lock(node.machine(), "a"):
        pass
    assert not (node.root / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_of_another_user_is_refused(node: FakeNode) -> None:
    path = node.root / LOCK_FILE[1:]
    path.parent.mkdir(parents=True)
    path.write_text("", encoding="utf-8")
    os.chown(path, 65534, 65534)
    with pytest.raises(AidcError, match="a file of uid 65534"), host_lock(node.machine(), "a"):
        pass


def test_user_without_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert lock._user() == pwd.getpwuid(os.getuid()).pw_name

    def unknown(uid: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert lock._user() == str(os.getuid())
