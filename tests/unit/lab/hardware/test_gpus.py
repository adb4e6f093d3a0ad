# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and their modules: what the collection's own readers make of the files, and when the kernel refuses."""
from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._gpu import parse_driver
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._hostinfo.parse import nvidia_version

from lab import kernel as files
from lab.hardware import gpus, tree
from lab.hardware.door import answer
from lab.hardware.model import Node
from lab.hardware.nodes import Dir, File, Link
from lab.hardware.spec import node_spec
from lab.hardware.state import Event, State
from tests.unit.lab.hardware.test_kernel import child, names, text
from tests.unit.lab.hardware.test_model import RAIL, Source

RELEASE = os.uname().release
PATH = f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko"
OPEN = {"version": "580.159.04", "license": "Dual MIT/GPL", "srcversion": "A" * 23, "vermagic": f"{RELEASE} SMP"}
TYPES = ["parmtype=NVreg_EnableStreamMemOPs:int", "parmtype=NVreg_RegistryDwords:charp"]


def ko(folder: Path, **other: str) -> bytes:
    """As the lab's DKMS writes it."""
    fields = [f"{key}={value}" for key, value in {**OPEN, **other}.items()]
    subprocess.run([sys.executable, str(files.KO), str(folder / "x.ko"), *fields, *TYPES], check=True)
    return (folder / "x.ko").read_bytes()


def host(tmp_path: Path, name: str = "gb200", **other: str) -> State:
    state, data = State(node_spec(name, "h", 1), tmp_path / "hardware.json"), ko(tmp_path, **other)
    state.gpus.file = {PATH: data}.get
    return state


def root(state: State, tmp_path: Path) -> Dir:
    (tmp_path / "class/net").mkdir(parents=True, exist_ok=True)
    return tree.build(Node(state.spec, str(tmp_path), Source([RAIL]), state), lambda: True)


def refused(state: State, name: str = "nvidia", path: str = PATH, **options: str) -> int | None:
    with pytest.raises(OSError) as caught:
        state.gpus.load(name, path, options)
    return caught.value.errno


@pytest.mark.parametrize(("licence", "flavour"), [("Dual MIT/GPL", "open"), ("NVIDIA", "proprietary")])
def test_the_files_say_what_the_module_s_file_has(tmp_path: Path, licence: str, flavour: str) -> None:
    state = host(tmp_path, "l40s", license=licence)
    top = root(state, tmp_path)
    assert names(top, "proc_driver") == [] and "nvidia" not in names(top, "module")
    state.gpus.load("nvidia", PATH, {"NVreg_EnableStreamMemOPs": "0x1", "NVreg_RegistryDwords": "A=1;", "unknown": "1"})
    found = nvidia_version(text(top, "proc_driver/nvidia/version"))
    assert (found["version"], found["flavour"]) == ("580.159.04", flavour)
    assert text(top, "module/nvidia/version") == "580.159.04" and text(top, "module/nvidia/refcnt") == "0"
    assert parse_driver.parameters(text(top, "proc_driver/nvidia/params")) == {
        "EnableStreamMemOPs": "1", "RegistryDwords": "A=1;"}
    assert names(top, "proc_driver/nvidia/gpus") == [gpu.pci for gpu in state.spec.gpus]
    for number, gpu in enumerate(state.spec.gpus):
        driven = parse_driver.information(text(top, f"proc_driver/nvidia/gpus/{gpu.pci}/information"))
        assert (driven.pci, driven.minor, driven.model) == (gpu.pci, number, "NVIDIA L40S")
        link = child(top, f"{gpu.pci_dir}/driver")
        assert isinstance(link, Link) and link.target.endswith("bus/pci/drivers/nvidia")
    assert set(names(top, "pci/drivers/nvidia")) == {gpu.pci for gpu in state.spec.gpus}


def test_when_it_is_not_loaded(tmp_path: Path) -> None:
    assert refused(host(tmp_path), path="/lib/modules/x.ko") == errno.ENOENT
    assert refused(host(tmp_path), name="loop") == errno.EINVAL
    assert refused(host(tmp_path), name="nvidia_uvm") == errno.ENOENT, "its symbols are nvidia's"
    assert refused(host(tmp_path), NVreg_EnableStreamMemOPs="much") == errno.EINVAL
    assert refused(host(tmp_path, vermagic="1.0 SMP")) == errno.ENOEXEC
    assert refused(host(tmp_path, "epyc9754")) == errno.ENODEV
    assert refused(host(tmp_path, license="NVIDIA")) == errno.ENODEV, "Blackwell needs the open modules"
    state = host(tmp_path)
    state.gpus.load("nouveau", PATH, {})
    assert refused(state) == errno.ENODEV, "nouveau has the GPUs"
    state.gpus.unload("nouveau")
    state.gpus.load("nvidia", PATH, {})
    assert refused(state) == errno.EEXIST


def test_who_is_in_the_way_of_unloading(tmp_path: Path) -> None:
    state = host(tmp_path)
    top = root(state, tmp_path)
    state.gpus.load("nvidia", PATH, {})
    state.gpus.load("nvidia_uvm", PATH, {})
    assert names(top, "module/nvidia/holders") == ["nvidia_uvm"]
    for unload in ("nvidia", "nvidia_uvm"):
        if unload == "nvidia":
            with pytest.raises(OSError) as caught:
                state.gpus.unload(unload)
            assert caught.value.errno == errno.EBUSY
        else:
            state.gpus.unload(unload)
    state.gpus.openers = lambda: 2
    assert text(top, "module/nvidia/refcnt") == "2" and names(top, "module/nvidia/holders") == []
    with pytest.raises(OSError):
        state.gpus.unload("nvidia")
    state.gpus.openers = lambda: 0
    state.gpus.unload("nvidia")
    assert names(top, "proc_driver") == []


def test_open_device_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "inside/a").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    (tmp_path / "inside/a/cgroup.procs").write_text(f"{os.getpid()}\n999999999\n", encoding="ascii")
    assert gpus.open_device_files(tmp_path / "inside") == 0
    with open(tmp_path / "dev/nvidia0", encoding="ascii"):
        assert gpus.open_device_files(tmp_path / "inside") == 1


def test_a_gpu_off_the_bus_and_after_a_boot(tmp_path: Path) -> None:
    state = host(tmp_path)
    gpu, other = state.spec.gpus[3], state.spec.gpus[0]
    state.gpus.load("nvidia", PATH, {})
    assert answer(state, b'{"do": "gpu", "gpu": 3, "condition": "lost"}') == {"ok": None}
    top = root(state, tmp_path)

    def start(pci_dir: str) -> bytes:
        file = child(top, f"{pci_dir}/config")
        assert isinstance(file, File)
        return file.read()[:4]

    assert (start(gpu.pci_dir), start(other.pci_dir)) == (b"\xff" * 4, b"\xde\x10\x41\x29")
    assert gpu.pci in names(top, "proc_driver/nvidia/gpus"), "the driver still has it"
    again = State(node_spec("gb200", "h", 1), tmp_path / "hardware.json")
    again.happen(Event.WARM)
    again.gpus.file = state.gpus.file
    top = root(again, tmp_path)
    assert gpu.pci not in names(top, "pci/devices") and other.pci in names(top, "pci/devices")
    again.gpus.load("nvidia", PATH, {})
    assert len(names(top, "proc_driver/nvidia/gpus")) == 3
    again.set_gpu(3, "well")
    again.happen(Event.DRIVER_RELOAD)
    assert "nvidia" in again.gpus.loaded, "a reload of the NIC's driver is none of the GPU's"
    again.happen(Event.COLD)
    assert not again.gpus.loaded and gpu.pci in names(root(again, tmp_path), "pci/devices")


def test_bad_conditions_are_named(tmp_path: Path) -> None:
    for request, wanted in (({"gpu": 9, "condition": "lost"}, "h has 4, from 0"),
                            ({"gpu": 0, "condition": "ill"}, "wanted one of well, lost, absent")):
        said: Any = answer(host(tmp_path), json.dumps({"do": "gpu", **request}).encode())
        assert wanted in said["error"]


def test_the_door_is_root_s(tmp_path: Path) -> None:
    state = host(tmp_path)
    wanted = json.dumps({"load": "nvidia", "file": PATH, "parameters": {}}).encode()
    with pytest.raises(PermissionError):
        gpus.door(state.gpus, lambda: False).write(wanted, 0)
    door = gpus.door(state.gpus, lambda: True)
    with pytest.raises(OSError):
        door.write(b'{"load": "nvidia"}', 0)
    door.write(wanted, 0)
    assert json.loads(door.read()) == {"nvidia": 0}
    door.write(b'{"unload": "nvidia"}', 0)
    assert json.loads(door.read()) == {}
