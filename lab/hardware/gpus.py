# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of a host's GPUs and of the kernel modules that drive them, and the files that show it.

What a module is, its file on the host's disk tells: version, licence, parameters. Numbers such as 1.4 name sections of
driver-slurm-k8s.
"""
from __future__ import annotations

import contextlib
import errno
import json
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.hardware.nodes import Attr, Dir, Link, Node, fail
from lab.hardware.spec import GpuSpec

# module -> what it uses (1.6: the order of loading and unloading).
USES: dict[str, tuple[str, ...]] = {
    "nvidia": (), "nvidia_uvm": ("nvidia",), "nvidia_modeset": ("nvidia",), "nvidia_drm": ("nvidia_modeset",),
    "nouveau": (),
}
# Parameters with their defaults (1.5); a module has those of them that its file names.
PARAMETERS: dict[str, str] = {
    "EnableStreamMemOPs": "0", "RegistryDwords": '""', "CoherentGPUMemoryMode": '""', "ImexChannelCount": "2048",
    "CreateImexChannel0": "0", "GrdmaPciTopoCheckOverride": "0", "DmaRemapPeerMmio": "1", "EnableResizableBar": "0",
    "EnablePCIERelaxedOrderingMode": "0", "RestrictProfilingToAdminUsers": "1",
}
# LOST: off the bus since this boot, each read of its configuration space is all ones [Linux PCI_ERROR_RESPONSE].
# ABSENT: the scan of the bus at boot did not find it (1.9: Xid 79; 0.20: three of four).
WELL, LOST, ABSENT = "well", "lost", "absent"
_NAMESPACE = uuid.UUID("6f1f6e4c-6f0e-4d0c-9f5e-a1dc00000000")


def modinfo(data: bytes) -> dict[str, list[str]]:
    """Texts KEY=VALUE of a module's file, each with a NUL before and behind."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(rb"(?<=\0)(\w+)=([^\0]*)(?=\0)", data):
        found.setdefault(key.decode(), []).append(value.decode("utf-8", "replace"))
    return found


@dataclass(frozen=True)
class Module:
    """A loaded module."""

    name: str
    version: str = ""
    srcversion: str = ""
    licence: str = ""
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """1.1 and NVIDIA/open-gpu-kernel-modules: the open modules are MIT and GPL, the others NVIDIA's."""
        return self.licence != "NVIDIA"

    @property
    def taint(self) -> str:
        return "" if self.name == "nouveau" else "OE" if self.is_open else "POE"


def _parameters(info: Mapping[str, list[str]], given: Mapping[str, str]) -> dict[str, str]:
    names = [one.partition(":")[0].removeprefix("NVreg_") for one in info.get("parmtype", ())]
    found = {name: PARAMETERS.get(name, "0") for name in names}
    for option, value in given.items():
        name = option.removeprefix("NVreg_")
        if name not in found:
            continue  # the kernel warns of an unknown parameter and goes on
        if found[name].startswith('"'):
            found[name] = f'"{value}"'
        else:
            try:
                found[name] = str(int(value, 0) % 2 ** 32)
            except ValueError:
                raise fail(errno.EINVAL) from None
    return found


class Gpus:
    """Of one host. ``file`` reads a module's file from the host's disk, or says None; ``openers`` counts device files
    that the host's processes have open."""

    def __init__(self, specs: tuple[GpuSpec, ...], host: str, release: str,
                 kept: Mapping[str, str] | None = None) -> None:
        self.specs, self.host, self.release = specs, host, release
        self.condition: dict[int, str] = {int(number): how for number, how in (kept or {}).items()}
        self.loaded: dict[str, Module] = {}
        self.driven: tuple[int, ...] = ()
        self.file: Callable[[str], bytes | None] = lambda path: None
        self.openers: Callable[[], int] = lambda: 0

    def boot(self) -> None:
        """No module outlives it; what was lost is not found by the scan of the bus."""
        self.loaded.clear()
        self.driven = ()
        self.condition = {number: ABSENT for number in self.condition}

    def set_condition(self, gpu: int, condition: str) -> None:
        if not isinstance(gpu, int) or not 0 <= gpu < len(self.specs):
            raise ValueError(f"GPU {gpu!r}: {self.host} has {len(self.specs)}, from 0")
        if condition not in (WELL, LOST, ABSENT):
            raise ValueError(f"condition: got {condition!r}, wanted one of {WELL}, {LOST}, {ABSENT}")
        self.condition.pop(gpu, None)
        if condition != WELL:
            self.condition[gpu] = condition
        if condition == ABSENT:
            self.driven = tuple(one for one in self.driven if one != gpu)

    def on_bus(self, gpu: int) -> bool:
        return self.condition.get(gpu) != ABSENT

    def answers(self, gpu: int) -> bool:
        return gpu not in self.condition

    def holders(self, name: str) -> list[str]:
        return [one for one in self.loaded if name in USES[one]]

    def references(self, name: str) -> int:
        """1.6: more references than holders are open device files."""
        return len(self.holders(name)) + (self.openers() if name == "nvidia" else 0)

    def driver(self) -> str | None:
        """Which module has the GPUs."""
        return next((name for name in ("nvidia", "nouveau") if name in self.loaded), None)

    def load(self, name: str, path: str, given: Mapping[str, str]) -> None:
        """init_module(2) with the file that modprobe took. OSError as the kernel and the driver refuse."""
        if name not in USES:
            raise fail(errno.EINVAL)
        if name in self.loaded:
            raise fail(errno.EEXIST)
        data = self.file(path)
        if data is None:
            raise fail(errno.ENOENT)
        info = modinfo(data)
        if info.get("vermagic", [""])[0].split(" ")[0] != self.release:
            raise fail(errno.ENOEXEC)
        if set(USES[name]) - set(self.loaded):
            raise fail(errno.ENOENT)  # unknown symbols
        first = {key: values[0] for key, values in info.items()}
        module = Module(name, first.get("version", ""), first.get("srcversion", ""), first.get("license", ""),
                        _parameters(info, given))
        takes = self._takes(module)
        if name == "nvidia" and not takes:
            raise fail(errno.ENODEV)  # "NVRM: No NVIDIA GPU found"; the functions may be nouveau's
        self.loaded[name] = module
        if takes:
            self.driven = takes

    def _takes(self, module: Module) -> tuple[int, ...]:
        if module.name not in ("nvidia", "nouveau") or self.driver() is not None:
            return ()
        # 1.1: Blackwell boards need the open modules.
        return tuple(one.gpu for one in self.specs if self.answers(one.gpu) and (module.is_open or not one.open_only))

    def unload(self, name: str) -> None:
        """delete_module(2)."""
        if name not in self.loaded:
            raise fail(errno.ENOENT)
        if self.references(name):
            raise fail(errno.EBUSY)
        if self.driver() == name:
            self.driven = ()
        del self.loaded[name]

    def uuid(self, gpu: int) -> str:
        return f"GPU-{uuid.uuid5(_NAMESPACE, f'{self.host} {gpu}')}"

    def show(self) -> dict[str, object]:
        return {"modules": sorted(self.loaded), "driven": list(self.driven),
                "condition": {str(one.gpu): self.condition.get(one.gpu, WELL) for one in self.specs}}


def open_device_files(processes: Path) -> int:
    """Device files of NVIDIA that the processes of a cgroup, and of those below it, have open."""
    count = 0
    for listed in processes.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            for pid in listed.read_text(encoding="ascii").split():
                count += _opened(f"/proc/{pid}/fd")
    return count


def _opened(folder: str) -> int:
    count = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):  # closed meanwhile
                count += "/dev/nvidia" in os.readlink(f"{folder}/{name}")
    return count


# -- files ------------------------------------------------------------------------------------------------------------


def module_dir(gpus: Gpus, name: str) -> Dir:
    """/sys/module/NAME."""
    module = gpus.loaded[name]
    found: dict[str, Node] = {
        "initstate": Attr("live"), "refcnt": Attr(lambda: str(gpus.references(name))), "taint": Attr(module.taint),
        "srcversion": Attr(module.srcversion),
        "holders": Dir({holder: Link(f"../../{holder}") for holder in gpus.holders(name)}),
    }
    if module.version:
        found["version"] = Attr(module.version)
    return Dir(found)


def version_text(module: Module, architecture: str) -> str:
    """Two shapes of the first line (1.4, samples proc_driver_nvidia_version-2, -3)."""
    what = (f"NVIDIA UNIX Open Kernel Module for {architecture}  {module.version}  Release Build  (SIMULATED)"
            if module.is_open else f"NVIDIA UNIX {architecture} Kernel Module  {module.version}")
    return f"NVRM version: {what}  Wed Jan  7 22:35:57 UTC 2026\nGCC version:  gcc version 13.3.0 (SIMULATED)"


def _information(gpus: Gpus, spec: GpuSpec, version: str) -> str:
    return (f"Model: \t\t {spec.model}\nIRQ:   \t\t {spec.irq}\nGPU UUID: \t {gpus.uuid(spec.gpu)}\n"
            f"Bus Type: \t PCIe\nBus Location: \t {spec.pci}\nDevice Minor: \t {spec.gpu}\n"
            f"GPU Firmware: \t {version}\nGPU Excluded:\t No")


class ProcDriver(Dir):
    """/proc/driver: nothing but the driver's folder, and that only while it is loaded (1.4)."""

    def __init__(self, gpus: Gpus, architecture: str) -> None:
        super().__init__()
        self.gpus, self.architecture = gpus, architecture

    def names(self) -> list[str]:
        return ["nvidia"] if "nvidia" in self.gpus.loaded else []

    def child(self, name: str) -> Node:
        module = self.gpus.loaded.get(name) if name == "nvidia" else None
        if module is None:
            raise fail(errno.ENOENT)
        parameters = "\n".join(f"{key}: {value}" for key, value in module.parameters.items())
        return Dir({
            "version": Attr(version_text(module, self.architecture)), "params": Attr(parameters),
            "gpus": Dir({self.gpus.specs[one].pci: Dir({
                "information": Attr(_information(self.gpus, self.gpus.specs[one], module.version))})
                for one in self.gpus.driven}),
        })


def door(gpus: Gpus, privileged: Callable[[], bool]) -> Attr:
    """The lab's own, for init_module and delete_module: a read says what is loaded, a write changes one module."""
    def store(text: str) -> None:
        if not privileged():
            raise fail(errno.EPERM)
        try:
            wanted = json.loads(text)
            if "unload" in wanted:
                gpus.unload(str(wanted["unload"]))
            else:
                gpus.load(str(wanted["load"]), posixpath.normpath(str(wanted["file"])), dict(wanted["parameters"]))
        except (ValueError, TypeError, KeyError):
            raise fail(errno.EINVAL) from None

    return Attr(lambda: json.dumps({name: gpus.references(name) for name in gpus.loaded}), store, permissions=0o600)
