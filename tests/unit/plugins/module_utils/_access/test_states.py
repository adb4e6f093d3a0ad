# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of run_access on a home directory of their own, with the real ssh-keygen."""
from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import io, processes, states
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.io import Store
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.model import Record
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access.states import Wish, perform, situation
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError

RUN = f"unit-{os.getpid()}"
MADE = Wish("made", RUN, "node1", address="127.0.0.1")
FOREIGN = b"ssh-rsa AAAA alice\n# no line end"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(io, "host_keys", lambda: ["ssh-ed25519 AAAAhost"])
    ssh = tmp_path / ".ssh"
    ssh.mkdir(mode=0o700)
    (ssh / "authorized_keys").write_bytes(FOREIGN)
    (ssh / "authorized_keys").chmod(0o664)
    return Store(tmp_path)


def authorized_wish(store: Store, **changes: object) -> Wish:
    work = perform(store, MADE)
    wish = Wish("authorized", RUN, "node1", public_key=work.values["public_key"],
                from_addresses=tuple(work.values["addresses"]))
    return dataclasses.replace(wish, **changes)  # type: ignore[arg-type]


def leave_run(store: Store, run_id: str, **changes: object) -> Record:
    """What another run left, or is still using."""
    here = io.here()
    record = Record(run_id, "node1", "bob from 192.0.2.9", here.now + 60, here.host, here.boot_id)
    record = dataclasses.replace(record, **changes)  # type: ignore[arg-type]
    store.prepare()
    io.own_directory(store.run_dir(run_id))
    store.write_record(record)
    (store.run_dir(run_id) / io.KEY).write_text("secret", encoding="utf-8")
    return record


def test_made_leaves_a_key_that_only_the_user_reads(store: Store) -> None:
    work = perform(store, MADE)
    key = store.run_dir(RUN) / io.KEY
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.run_dir(RUN).stat().st_mode) == 0o700
    assert work.values["public_key"].startswith("ssh-ed25519 ")
    assert work.values["addresses"] == ["127.0.0.1"]
    assert "PRIVATE KEY" in key.read_text(encoding="utf-8")
    assert "PRIVATE KEY" not in repr(work)
    # Made again, the key is another one, and ssh-keygen asks nothing.
    assert perform(store, MADE).values["public_key"] != work.values["public_key"]


def test_a_whole_run_leaves_nothing(store: Store) -> None:
    perform(store, authorized_wish(store))
    assert situation(store) == {"runs": [RUN], "authorized_runs": [RUN], "processes": situation(store)["processes"]}
    text = store.keys_file.read_bytes()
    assert text.endswith(FOREIGN) and stat.S_IMODE(store.keys_file.stat().st_mode) == 0o644
    perform(store, Wish("absent", RUN))
    assert store.keys_file.read_bytes() == FOREIGN
    assert store.run_ids() == [] and not store.run_dir(RUN).exists()
    # Once more: nothing to do is no error.
    perform(store, Wish("absent", RUN))


def test_a_missing_authorized_keys_is_made_for_the_user_alone(store: Store) -> None:
    store.keys_file.unlink()
    store.keys_file.parent.rmdir()
    perform(store, authorized_wish(store))
    assert stat.S_IMODE(store.keys_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.keys_file.parent.stat().st_mode) == 0o700


def test_a_linked_authorized_keys_stays_a_link(store: Store, tmp_path: Path) -> None:
    real = tmp_path / "keys"
    store.keys_file.rename(real)
    store.keys_file.symlink_to(real)
    perform(store, authorized_wish(store))
    assert store.keys_file.is_symlink() and real.read_bytes().endswith(FOREIGN)


@pytest.mark.parametrize("changes", [
    {"public_key": 'ssh-ed25519 AAAA",command="x'}, {"public_key": "ssh-ed25519 AAAA\nssh-rsa BBBB"},
    {"from_addresses": ()}, {"from_addresses": ('192.0.2.1",no-pty',)}, {"from_addresses": ("*",)},
])
def test_nothing_gets_into_the_options_of_the_line(store: Store, changes: dict[str, object]) -> None:
    with pytest.raises(AidcError):
        perform(store, authorized_wish(store, **changes))
    assert store.keys_file.read_bytes() == FOREIGN


def test_dead_runs_are_swept_first(store: Store) -> None:
    leave_run(store, "dead-finished", finished=True)
    leave_run(store, "dead-late", until=0.0)
    leave_run(store, "dead-boot", boot_id="another")
    (store.base / "runs" / "dead-empty").mkdir()
    work = perform(store, MADE)
    assert work.swept_runs == {"dead-finished", "dead-late", "dead-boot", "dead-empty"}
    assert store.run_ids() == [RUN]


def test_a_run_that_is_alive_is_named_and_left_alone(store: Store) -> None:
    leave_run(store, "alive-1", pid=os.getpid(), pid_start=processes.start_of(os.getpid()))
    with pytest.raises(AidcError) as caught:
        perform(store, MADE)
    assert "alive-1" in str(caught.value) and "bob from 192.0.2.9" in str(caught.value)
    assert (store.run_dir("alive-1") / io.KEY).exists() and store.run_ids() == ["alive-1"]
    work = perform(store, Wish("swept"))
    assert [run["run_id"] for run in work.values["alive"]] == ["alive-1"] and work.swept_runs == set()
    # The same head has been asked, so on its other hosts it is over; another head's is in the way.
    wish = Wish("authorized", RUN, "node2", public_key="ssh-ed25519 AAAA", from_addresses=("192.0.2.1",))
    with pytest.raises(AidcError):
        perform(store, wish)
    perform(store, dataclasses.replace(wish, head="node1"))
    assert store.run_ids() == [RUN]


def test_waits_for_a_run_that_ends(store: Store) -> None:
    leave_run(store, "ends-soon", until=time.time() + 0.7)
    begin = time.monotonic()
    perform(store, dataclasses.replace(MADE, wait_seconds=10))
    assert 0.4 < time.monotonic() - begin < 5
    assert store.run_ids() == [RUN]


def test_processes_of_dead_runs_end_and_of_living_ones_do_not(store: Store) -> None:
    code = "import time; print('up', flush=True); time.sleep(60)"
    running = {}
    for run_id in ("dead-1", "alive-1"):
        environment = {**os.environ, processes.MARK_VARIABLE: run_id}
        running[run_id] = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
        running[run_id].stdout.readline()  # type: ignore[union-attr]
    leave_run(store, "alive-1")
    try:
        work = perform(store, Wish("swept"))
        assert "dead-1" in {process.run_id for process in work.killed}
        assert running["dead-1"].wait(5) == -15
        assert running["alive-1"].poll() is None
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def test_a_run_folder_that_is_a_link_is_refused(store: Store, tmp_path: Path) -> None:
    store.prepare()
    (tmp_path / "elsewhere").mkdir()
    store.run_dir(RUN).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AidcError, match="wanted a directory"):
        perform(store, MADE)


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "../../x", "x y", "-x1", "abc\n"])
def test_a_run_id_is_no_path(store: Store, run_id: str) -> None:
    with pytest.raises(AidcError):
        store.run_dir(run_id)


def test_holder_names_where_the_controller_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.250 4711 192.0.2.1 22")
    assert states.holder_of(Wish("made", holder="alice")) == "alice from 192.0.2.250"
