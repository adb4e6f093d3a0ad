# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import stat
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._access import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result


def test_host_keys_come_without_comment_and_without_rubbish(tmp_path: Path) -> None:
    (tmp_path / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAAC3 root@node\n", encoding="utf-8")
    (tmp_path / "ssh_host_ecdsa_key.pub").write_text("ecdsa-sha2-nistp256 AAAAE2\n", encoding="utf-8")
    (tmp_path / "ssh_host_rsa_key.pub").write_text("", encoding="utf-8")
    (tmp_path / "ssh_host_dsa_key.pub").write_text("-----BEGIN X\n", encoding="utf-8")
    assert io.host_keys(tmp_path) == ["ecdsa-sha2-nistp256 AAAAE2", "ssh-ed25519 AAAAC3"]
    assert io.host_keys(tmp_path / "none") == []


def test_addresses_are_numbers() -> None:
    assert io.addresses_of("127.0.0.1") == ["127.0.0.1"]
    assert io.addresses_of("no-such-name.invalid") == []


def test_missing_ssh_keygen_is_named(tmp_path: Path) -> None:
    machine = Machine(run=lambda argv, timeout_seconds: Result(tuple(argv), "missing"))
    with pytest.raises(AidcError, match="ssh-keygen: got the program is not installed"):
        io.make_key(machine, tmp_path, "c")


def test_own_directory_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.mkdir(mode=0o755)
    io.own_directory(path, tighten=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    io.own_directory(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_remove_takes_the_key_even_if_the_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = io.Store(tmp_path)
    store.prepare()
    folder = store.run_dir("run-1")
    folder.mkdir()
    (folder / io.KEY).write_text("secret", encoding="utf-8")
    monkeypatch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
    assert not store.remove("run-1")
    assert not (folder / io.KEY).exists()
