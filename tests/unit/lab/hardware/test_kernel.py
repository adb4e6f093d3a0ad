# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab import kernel as files
from lab.hardware import kernel, nodes
from lab.hardware.model import Node
from lab.hardware.spec import node_spec
from lab.hardware.state import Driver, Event, State, StateError
from tests.unit.lab.hardware.test_model import RAIL, Source

SPEC = node_spec("l40s", "h", 1)
RELEASE = "6.1.0-1-amd64"
INBOX = f"usr/lib/modules/{RELEASE}/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko"
OFED = f"usr/lib/modules/{RELEASE}/updates/dkms/mlx5_core.ko"


@pytest.fixture
def model(tmp_path: Path) -> Node:
    for name in ("loop/parameters", "ib_core/holders"):
        (tmp_path / "module" / name).mkdir(parents=True)
    (tmp_path / "module/loop/parameters/max_loop").write_text("8\n")
    (tmp_path / "class/net").mkdir(parents=True)
    return Node(SPEC, str(tmp_path), Source([RAIL]))


def child(node: nodes.Node, path: str) -> nodes.Node:
    for name in path.split("/"):
        assert isinstance(node, nodes.Dir)
        node = node.child(name)
    return node


def text(node: nodes.Node, path: str) -> str:
    file = child(node, path)
    assert isinstance(file, nodes.File)
    return file.read().decode().strip()


def names(node: nodes.Node, path: str) -> list[str]:
    folder = child(node, path)
    assert isinstance(folder, nodes.Dir)
    return list(folder.names())


def test_modules_of_the_stack_beside_the_machine_s_own(model: Node) -> None:
    folder = kernel.Modules(model)
    assert set(folder.names()) == {"loop", *kernel.USES}
    assert text(folder, "loop/parameters/max_loop") == "8"
    closed = child(folder, "loop/parameters/max_loop")
    assert isinstance(closed, nodes.File)
    closed.check_open(os.O_RDONLY)
    with pytest.raises(OSError) as refused:
        closed.check_open(os.O_WRONLY)
    assert refused.value.errno == errno.EROFS
    assert names(folder, "ib_core/holders") == ["ib_cm", "iw_cm", "ib_uverbs", "mlx5_ib", "rdma_cm", "rdma_ucm"]
    link = child(folder, "mlx5_core/holders/mlx5_ib")
    assert isinstance(link, nodes.Link) and link.target == "../../mlx5_ib"
    # The kernel's own has no version (host-setup 2.3).
    assert "version" not in names(folder, "mlx5_core")
    with pytest.raises(OSError) as caught:
        folder.child("mlx_compat")
    assert caught.value.errno == errno.ENOENT


def test_with_ofed(model: Node) -> None:
    model.state.set_stack("ofed")
    folder = kernel.Modules(model)
    assert {"mlx_compat", "mlxdevm"} <= set(folder.names())
    assert text(folder, "mlx5_core/version") == "25.10-1.7.1"
    assert "mlx5_core" in names(folder, "mlxdevm/holders") and "ib_core" in names(folder, "mlx_compat/holders")
    lines = {line.split()[0]: line for line in kernel.proc_modules(model.state).splitlines()}
    assert lines["mlx5_core"] == "mlx5_core 16384 1 mlx5_ib, Live 0x0000000000000000"
    assert lines["mlx5_ib"].split()[3] == "-"


def test_without_the_driver_no_module_is_loaded(model: Node) -> None:
    model.state.load(False)
    assert list(kernel.Modules(model).names()) == ["loop"]
    assert kernel.proc_modules(model.state) == ""


def test_a_holder_is_in_the_way(model: Node) -> None:
    attribute = kernel.door(model, lambda: True)
    started: list[str] = []
    model.reload = lambda: started.append("reload")
    model.state.hold("nvidia_peermem", ["ib_uverbs"])
    assert names(kernel.Modules(model), "ib_uverbs/holders")[-1] == "nvidia_peermem"
    assert names(kernel.Modules(model), "nvidia_peermem/holders") == []
    assert json.loads(attribute.read())["in_use"] == "ib_uverbs is in use by: nvidia_peermem"
    for written, code in (("restart", errno.EBUSY), ("dance", errno.EINVAL)):
        with pytest.raises(OSError) as caught:
            attribute.write(written.encode(), 0)
        assert caught.value.errno == code
    model.state.hold("nvidia_peermem", [])
    attribute.write(b"restart\n", 0)
    assert started == ["reload"]
    assert json.loads(attribute.read()) == {"busy": False, "loaded": "inbox", "in_use": None}
    with pytest.raises(OSError):
        kernel.door(model, lambda: False).write(b"restart", 0)
    with pytest.raises(StateError, match="wanted a list of modules"):
        model.state.hold("x", "ib_core")


def put(layer: Path, path: str, *fields: str) -> None:
    target = layer / path
    subprocess.run([sys.executable, str(files.KO), str(target), *fields], check=True)


def test_the_driver_on_the_disk_of_the_host(tmp_path: Path) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    upper.mkdir()
    lower.mkdir()
    layers = (upper, lower)
    assert kernel.on_disk(layers, RELEASE) is None
    put(lower, INBOX, *files.fields("mlx5_core", RELEASE))
    assert kernel.on_disk(layers, RELEASE) == Driver("inbox", "", files.srcversion("inbox", "mlx5_core", RELEASE))
    put(upper, OFED, "version=25.10-1.7.1", "srcversion=ABC")
    assert kernel.on_disk(layers, RELEASE) == Driver("ofed", "25.10-1.7.1", "ABC")
    assert kernel.on_disk(layers, "another") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="a whiteout is a device")
def test_a_file_that_the_upper_layer_removed_is_gone(tmp_path: Path) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    put(lower, OFED, "version=1", "srcversion=A")
    put(lower, INBOX, "srcversion=B")
    (upper / OFED).parent.mkdir(parents=True)
    os.mknod(upper / OFED, 0o020000, os.makedev(0, 0))
    assert kernel.on_disk((upper, lower), RELEASE) == Driver("inbox", "", "B")
    # A whole folder: its name is a whiteout.
    os.mknod(upper / f"usr/lib/modules/{RELEASE}/kernel", 0o020000, os.makedev(0, 0))
    assert kernel.on_disk((upper, lower), RELEASE) is None


@pytest.mark.parametrize("opaque", [True, False])
def test_a_folder_that_was_made_again_hides_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opaque: bool
) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    put(lower, INBOX, "srcversion=B")
    (upper / f"usr/lib/modules/{RELEASE}/kernel").mkdir(parents=True)
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"y" if opaque and Path(path).name == "kernel" else b"n")
    assert (kernel.on_disk((upper, lower), RELEASE) is None) is opaque


def test_installed_is_loaded_by_a_reload_or_a_boot_and_not_before(tmp_path: Path) -> None:
    disk: list[Driver | None] = [Driver("inbox", "", "A")]
    state = State(SPEC, tmp_path / "state.json")
    state.disk = lambda: disk[0]
    state.happen(Event.COLD)
    disk[0] = Driver("ofed", "25.10-1.7.1", "B")
    assert (state.ofed(), state.loaded) == (False, Driver("inbox", "", "A"))
    state.happen(Event.DRIVER_RELOAD)
    assert (state.ofed(), state.loaded) == (True, disk[0])
    assert State(SPEC, tmp_path / "state.json").ofed()
    state.hold("nvidia_peermem", ["ib_uverbs"])
    state.happen(Event.WARM)
    assert state.holders == {}
    # No file for this kernel: openibd says OK, and nothing is loaded (FaaSMem#1).
    disk[0] = None
    state.load(False)
    state.happen(Event.DRIVER_RELOAD)
    state.load(True)
    assert (state.loaded, state.bound(0), state.rdma(0)) == (None, False, False)


def test_what_the_lab_said_outlives_the_disk(tmp_path: Path) -> None:
    state = State(SPEC, tmp_path / "state.json")
    state.set_stack("ofed")
    state.happen(Event.DRIVER_RELOAD)
    assert state.ofed() and State(SPEC, tmp_path / "state.json").said == "ofed"
