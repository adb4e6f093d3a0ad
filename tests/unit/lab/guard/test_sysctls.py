# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.guard.sysctls import BOOT_ID, Caller, Sysctls, missing_keys, of_interface

FILE = stat.S_IFREG


class As(Caller):
    """A caller of a given user, with or without CAP_NET_ADMIN."""

    def __init__(self, uid: int = 0, net: bool = False) -> None:
        self.uid, self.net = uid, net

    def identity(self) -> tuple[int, int]:
        return self.uid, 1

    def may_administrate_net(self, pid: int) -> bool:
        return self.net


FILES = (
    ("vm/swappiness", "60\n", 0o644), ("vm/drop_caches", "", 0o200), ("kernel/ostype", "L\n", 0o444),
    ("kernel/hostname", "real\n", 0o644), ("net/ipv4/ip_forward", "0\n", 0o644), ("vm/dirty_ratio", "20\n", 0o644),
    ("vm/dirty_bytes", "0\n", 0o644), ("fs/binfmt_misc/status", "enabled\n", 0o644),
    ("kernel/random/boot_id", "machine\n", 0o444),
)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name, text, mode in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
        file.chmod(mode)
    return tmp_path


NET = {"net/core/rmem_max": (FILE | 0o644, "212992\n")}


def tree(top: Path, caller: Caller | None = None) -> Sysctls:
    return Sysctls(NET, caller or As(), str(top))


def put(sysctls: Sysctls, path: str, data: bytes, offset: int = 0) -> int:
    handle = sysctls.open(path, os.O_WRONLY)
    return sysctls.write(path, data, offset, handle)


def get(sysctls: Sysctls, path: str) -> str:
    return sysctls.read(path, 4096, 0, sysctls.open(path, os.O_RDONLY)).decode()


def refusal(function: Callable[[], object]) -> int | None:
    with pytest.raises(OSError) as caught:
        function()
    return caught.value.errno


def test_own_value_over_the_machines(top: Path) -> None:
    one, two = tree(top), tree(top)
    assert put(one, "/vm/swappiness", b"61\n") == 3
    assert (get(one, "/vm/swappiness"), get(two, "/vm/swappiness")) == ("61\n", "60\n")
    assert (top / "vm/swappiness").read_text(encoding="ascii") == "60\n"


def test_namespaced_keys_are_the_kernels(top: Path) -> None:
    sysctls = tree(top)
    put(sysctls, "/kernel/hostname", b"new\n")
    put(sysctls, "/net/ipv4/ip_forward", b"1\n")
    assert (top / "kernel/hostname").read_text(encoding="ascii").startswith("new\n")
    assert (top / "net/ipv4/ip_forward").read_text(encoding="ascii") == "1\n"


def test_net_keys_that_the_host_lacks(top: Path) -> None:
    sysctls = tree(top)
    assert [name for name, _mode, _ino in sysctls.readdir("/net", 0)] == [".", "..", "core", "ipv4"]
    assert [name for name, _mode, _ino in sysctls.readdir("/net/core", 0)] == [".", "..", "rmem_max"]
    put(sysctls, "/net/core/rmem_max", b"67108864")
    assert get(sysctls, "/net/core/rmem_max") == "67108864\n"


def test_boot_id_is_the_boots_own(top: Path) -> None:
    assert len({get(tree(top), f"/{BOOT_ID}") for _boot in range(2)} | {"machine\n"}) == 3


def test_modes_count_for_root_too(top: Path) -> None:
    sysctls = tree(top)
    assert refusal(lambda: put(sysctls, "/kernel/ostype", b"x")) == errno.EACCES
    assert refusal(lambda: get(sysctls, "/vm/drop_caches")) == errno.EACCES
    assert put(sysctls, "/vm/drop_caches", b"3\n") == 2


def test_others_may_read_and_network_administrators_write_net(top: Path) -> None:
    user, networkd = tree(top, As(998)), tree(top, As(998, net=True))
    assert get(user, "/vm/swappiness") == "60\n"
    assert refusal(lambda: put(user, "/net/core/rmem_max", b"4096")) == errno.EACCES
    assert put(networkd, "/net/core/rmem_max", b"4096") == 4
    assert refusal(lambda: put(networkd, "/vm/swappiness", b"1")) == errno.EACCES
    assert refusal(lambda: user.access("/vm/swappiness", os.W_OK)) == errno.EACCES


def test_later_writes_at_an_offset_are_ignored(top: Path) -> None:
    sysctls = tree(top)
    assert put(sysctls, "/vm/swappiness", b"70", offset=3) == 2
    assert get(sysctls, "/vm/swappiness") == "60\n"


def test_coupled(top: Path) -> None:
    sysctls = tree(top)
    put(sysctls, "/vm/dirty_bytes", b"4096")
    assert get(sysctls, "/vm/dirty_ratio") == "0\n"
    put(sysctls, "/vm/dirty_ratio", b"30")
    assert (get(sysctls, "/vm/dirty_bytes"), get(sysctls, "/vm/dirty_ratio")) == ("0\n", "30\n")


def test_hidden(top: Path) -> None:
    sysctls = tree(top)
    assert "binfmt_misc" not in [name for name, _mode, _ino in sysctls.readdir("/fs", 0)]
    assert refusal(lambda: sysctls.getattr("/fs/binfmt_misc")) == errno.ENOENT


def test_missing_keys() -> None:
    machine = {"net/core/a": FILE | 0o644, "net/core/b": FILE | 0o644, "net/core/c": FILE | 0o644,
               "net/core/ro": FILE | 0o444, "net/ipv4/conf/eth9/x": FILE | 0o644}
    assert missing_keys(machine, {"net/core/a": FILE | 0o644, "net/core/b": FILE | 0o444}) == {
        "net/core/b", "net/core/c", "net/core/ro"}


def test_of_interface() -> None:
    assert of_interface("net/ipv4/conf/eth0/rp_filter")
    assert not of_interface("net/ipv4/conf/all/rp_filter")
    assert not of_interface("net/ipv4/neigh/default/gc_thresh3")
    assert not of_interface("net/ipv4/tcp_rmem")
