# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import errno
import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid import io
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.configure import configure
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gid.model import Request, Want
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.errors import AidcError
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import FakeNode, failed, ok

CONFIGFS = "/sys/kernel/config/rdma_cm"


def mode_file(device: str) -> str:
    return f"{CONFIGFS}/{device}/ports/1/default_roce_mode"


def request(node: FakeNode, **fields: t.Any) -> Request:
    return Request(tuple(Want(rail.pci) for rail in node.rails), **fields)


@pytest.fixture
def configfs(node: FakeNode) -> FakeNode:
    for device in ("mlx5_0", "rocep3s0f0"):
        node.put(mode_file(device), "RoCE v2\n")
    return node


def test_gids_without_a_mode_need_no_tool_and_no_lock(node: FakeNode) -> None:
    result = configure(node.machine(), request(node), False)
    assert (result["changed"], result["commands"], node.calls) == (False, [], [])
    assert [(port["pci"], port["rdma_device"], port["index"], port["address"], port["netdev"], port["roce_mode"])
            for port in result["ports"]] == [
        ("0000:03:00.0", "mlx5_0", 3, "198.51.100.1", "rail0", None),
        ("0002:03:00.0", "rocep3s0f0", 3, "203.0.113.1", "rail1", None)]
    assert not (node.root / "run/lock").exists()


def test_empty_slots_answer_einval(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.read_text

    def read(self: Path, *arguments: t.Any, **options: t.Any) -> str:
        if "/gid_attrs/" in str(self) and self.name == "2":
            raise OSError(errno.EINVAL, "Invalid argument")
        return original(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read)
    assert configure(node.machine(), request(node), True)["ports"][0]["index"] == 3


def test_a_gid_that_comes_late_is_waited_for(node: FakeNode) -> None:
    base = "/sys/class/infiniband/mlx5_0/ports/1/gids/3"
    late = node.get(base)
    waits: list[float] = []
    node.put(base, "0000:0000:0000:0000:0000:0000:0000:0000\n")

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        node.now += seconds
        if len(waits) == 3:
            node.put(base, f"{late}\n")

    machine = dataclasses.replace(node.machine(), sleep=sleep)
    assert configure(machine, request(node), False)["ports"][0]["index"] == 3
    assert len(waits) == 3


def test_a_gid_that_never_comes(node: FakeNode) -> None:
    node.put("/sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n")
    with pytest.raises(AidcError, match=r"none within 2 s; the table has: .*Nothing was changed"):
        configure(node.machine(), request(node, wait_seconds=2.0), False)
    assert 2.0 <= node.now < 2.5
    reported = configure(node.machine(), request(node, must_have=False), True)
    assert [port["index"] for port in reported["ports"]] == [None, 3]


def test_mode_converges_and_check_mode_equals_the_run(configfs: FakeNode) -> None:
    configfs.put(mode_file("mlx5_0"), "IB/RoCE v1\n")
    asked = request(configfs, roce_mode="v2")
    predicted = configure(configfs.machine(), asked, True)
    assert configfs.get(mode_file("mlx5_0")) == "IB/RoCE v1"
    real = configure(configfs.machine(), asked, False)
    for key in ("changed", "before", "after", "commands", "steps", "diff"):
        assert predicted[key] == real[key], key
    assert real["commands"] == [["write", mode_file("mlx5_0")]]
    assert configfs.get(mode_file("mlx5_0")) == "RoCE v2"
    assert [port["roce_mode"] for port in real["ports"]] == ["v2", "v2"]
    assert configure(configfs.machine(), asked, False)["changed"] is False


def test_killed_between_two_writes_the_next_run_converges(configfs: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    original = io._write
    seen: list[Path] = []

    def write(path: Path, text: str) -> None:
        if seen:
            raise Killed
        seen.append(path)
        original(path, text)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(io, "_write", write)
        configure(configfs.machine(), request(configfs, roce_mode="v1"), False)
    result = configure(configfs.machine(), request(configfs, roce_mode="v1"), False)
    assert result["commands"] == [["write", mode_file("rocep3s0f0")]]
    assert [entry["roce_mode"] for entry in result["after"]] == ["v1", "v1"]


def test_a_write_without_effect_is_an_error(configfs: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "_write", lambda path, text: None)
    with pytest.raises(AidcError, match=r"got v2, wanted v1 .*Done before the error: write "):
        configure(configfs.machine(), request(configfs, roce_mode="v1"), False)


def test_a_write_that_fails(configfs: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, text: str) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(io, "_write", write)
    with pytest.raises(AidcError, match=r"Permission denied.*Nothing was changed"):
        configure(configfs.machine(), request(configfs, roce_mode="v1"), False)


def test_the_folder_in_configfs_is_made_and_removed_again(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    (node.root / CONFIGFS[1:]).mkdir(parents=True)
    original, removed = Path.mkdir, []

    def mkdir(self: Path, *arguments: t.Any, **options: t.Any) -> None:
        original(self, *arguments, **options)
        if str(self.parent).endswith("rdma_cm"):
            node.put(mode_file(self.name), "RoCE v2\n")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", lambda self: removed.append(self.name))
    assert configure(node.machine(), request(node, roce_mode="v2"), True)["changed"] is False
    # Once at the first reading; the second found what this fake leaves.
    assert set(removed) == {"mlx5_0", "rocep3s0f0"}


def test_a_device_that_configfs_does_not_know(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    (node.root / CONFIGFS[1:]).mkdir(parents=True)

    def mkdir(self: Path, *arguments: t.Any, **options: t.Any) -> None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), str(self))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(AidcError, match=r"rdma_cm/mlx5_0: No such device, wanted v2 to be set there"):
        configure(node.machine(), request(node, roce_mode="v2"), True)


# -- cma_roce_mode: argv in, what it printed out --------------------------------------------------

def tool(node: FakeNode, *, works: bool = True) -> None:
    values = {"mlx5_0": "IB/RoCE v1", "rocep3s0f0": "RoCE v2"}

    def answer(argv: tuple[str, ...]) -> Result:
        device = argv[2]
        if "-m" in argv and works:
            values[device] = {"1": "IB/RoCE v1", "2": "RoCE v2"}[argv[-1]]
        return ok(f"{values[device]}\n")

    node.override[("cma_roce_mode",)] = answer


def test_by_tool(node: FakeNode) -> None:
    tool(node)
    result = configure(node.machine(), request(node, roce_mode="v2"), False)
    assert result["commands"] == [["cma_roce_mode", "-d", "mlx5_0", "-p", "1", "-m", "2"]]
    assert configure(node.machine(), request(node, roce_mode="v2"), False)["changed"] is False


def test_a_tool_that_lies(node: FakeNode) -> None:
    tool(node, works=False)
    with pytest.raises(AidcError, match="got v1, wanted v2"):
        configure(node.machine(), request(node, roce_mode="v2"), False)


@pytest.mark.parametrize(("answer", "got"), [
    (Result((), "missing"), r"unsupported: no configfs \(/sys/kernel/config/rdma_cm is not there\) and no cma_roce"),
    (Result((), "timeout", None, "", "no answer within 1 s"), "cma_roce_mode: no answer within 1 s"),
    (ok("garbage\x00"), "unknown mode 'garbage"), (ok(""), "unknown mode ''"),
    (failed(1, "need root"), "cma_roce_mode: exit status 1: need root"),
])
def test_a_tool_that_does_not_work(node: FakeNode, answer: Result, got: str) -> None:
    node.override[("cma_roce_mode",)] = lambda argv: answer
    with pytest.raises(AidcError, match=rf"{got}.*Nothing was changed"):
        configure(node.machine(), request(node, roce_mode="v2"), False)
