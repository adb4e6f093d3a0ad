# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of gpu_node.py with package managers, kernels, DKMS and a kernel that loads and unloads modules.

Rows are written out here, as a managed node's Python reads no YAML; those of the role are in test_golden.py.
"""
from __future__ import annotations

import os
import shutil
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver import argspec
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._nvdriver.configure import configure

from tests.unit.plugins import gpu_node
from tests.unit.plugins.fake import failed, ok
from tests.unit.plugins.gpu_node import GpuNode

KERNEL, NEXT = "6.8.0-31-generic", "6.8.0-40-generic"
VERSION, OLD = "580.159.04", "580.126.09"
UBUNTU = 'VERSION_ID="24.04"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
RHEL = 'VERSION_ID="9.4"\nID="rhel"\nID_LIKE="fedora"\n'
SUFFIX = {"apt": "-1ubuntu1", "dnf": "-1.el9"}
COMMON = ["libnvidia-compute-580", "nvidia-utils-580"]
OPEN = ["nvidia-dkms-580-open"]
SETS: list[dict[str, t.Any]] = [
    {"id": "ubuntu", "distributions": ["ubuntu"], "releases": ["22.04", "24.04"],
     "architectures": ["x86_64", "aarch64"], "repository": "cuda", "manager": "apt", "branch_from": 560,
     "branch_below": 590, "pinned": {
         "common": ["libnvidia-compute-{branch}", "nvidia-utils-{branch}"], "open": ["nvidia-dkms-{branch}-open"],
         "proprietary": ["nvidia-dkms-{branch}"], "nvl": ["nvidia-imex"], "nvswitch": ["nvidia-fabricmanager"]},
     "unpinned": ["dkms", "linux-headers-{kernel}"], "source": "a test"},
    {"id": "ubuntu-own", "distributions": ["ubuntu"], "releases": ["24.04"], "architectures": ["x86_64"],
     "repository": "distribution", "manager": "apt", "branch_from": 570, "pinned": {
         "common": ["nvidia-utils-{branch}-server"], "open": ["nvidia-headless-no-dkms-{branch}-server-open"]},
     "by_kernel": ["linux-modules-nvidia-{branch}-server{open}-{kernel_flavour}"],
     "hold_with": ["linux-image-{kernel_flavour}"], "precompiled": True, "source": "a test"},
    {"id": "rhel9", "distributions": ["rhel"], "releases": ["9"], "architectures": ["x86_64"], "repository": "cuda",
     "manager": "dnf", "branch_from": 580, "pinned": {"common": ["nvidia-driver-cuda"],
                                                      "open": ["kmod-nvidia-open-dkms"]},
     "unpinned": ["kernel-devel-{kernel}"], "stream": {"open": "nvidia-driver:{branch}-open"}, "source": "a test"},
]
KNOWN_BAD: list[dict[str, t.Any]] = [
    {"id": "pages", "when": {"architecture": "aarch64", "page_size_bytes": 65536, "branches": [580]},
     "action": "refuse", "what": "faults", "hint": "another branch", "source": "issue 1"},
    {"id": "ended", "when": {"branches": [570]}, "action": "warn", "what": "no fixes", "source": "a list"},
]
NOT_FOUND = "modinfo: ERROR: Module nvidia not found.\n"
LICENCES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}


@dataclass
class DriverNode(GpuNode):
    architecture: str = "x86_64"
    page_size: int = 4096
    manager: str = "apt"
    # Name: [version, want, state].
    installed: dict[str, list[str]] = field(default_factory=dict)
    # Name: versions of the repository.
    repository: dict[str, list[str]] = field(default_factory=dict)
    # By kernel: version and flavour of nvidia.ko.
    disk: dict[str, tuple[str, str]] = field(default_factory=dict)
    dkms: str = ""
    locked: list[str] = field(default_factory=list)
    secure_boot: str = ""
    loaded_by: dict[str, list[str]] = field(default_factory=dict)

    # -- building ---------------------------------------------------------------------------------------------------

    def kernel(self, release: str, built_at: float | None = None) -> None:
        self.put(f"/lib/modules/{release}/modules.dep", "")
        self.put(f"/boot/vmlinuz-{release}", "")
        name = f"initrd.img-{release}" if self.manager == "apt" else f"initramfs-{release}.img"
        self.put(f"/boot/{name}", "")
        os.utime(self.root / "boot" / name, (1.0, built_at or 1.0))

    def unload(self) -> None:
        for path in ("sys/module/nvidia", "proc/driver/nvidia"):
            shutil.rmtree(self.root / path, ignore_errors=True)

    def load(self, version: str, flavour: str = "open", params: str = gpu_node.PARAMS) -> None:
        self.unload()
        self.version = version
        line = gpu_node.OPEN if flavour == "open" else gpu_node.CLOSED
        self.put("/proc/driver/nvidia/version", line.format(arch=self.architecture, version=version) + "\n")
        self.put("/proc/driver/nvidia/params", params)
        self.put("/sys/module/nvidia/version", f"{version}\n")
        self.put("/sys/module/nvidia/refcnt", "1\n")
        for number, (pci, data) in enumerate(self.cards.items()):
            self.put(f"/proc/driver/nvidia/gpus/{pci}/information", gpu_node.INFORMATION.format(
                name=data["Product Name"], uuid=data["GPU UUID"], pci=pci, minor=number, version=version))
        self.hold_module("nvidia", "nvidia_uvm")

    def hold_module(self, module: str, holder: str) -> None:
        self.put(f"/sys/module/{holder}/initstate", "live\n")
        (self.root / f"sys/module/{module}/holders").mkdir(parents=True, exist_ok=True)
        (self.root / f"sys/module/{module}/holders/{holder}").symlink_to(f"../../{holder}")

    def userspace(self, version: str) -> None:
        library = self.root / "usr/lib/x86_64-linux-gnu"
        library.mkdir(parents=True, exist_ok=True)
        for path in library.glob("libnvidia-ml*"):
            path.unlink()
        (library / f"libnvidia-ml.so.{version}").write_text("", encoding="ascii")
        (library / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")

    def install(self, version: str = VERSION, *more: str) -> None:
        """What the package manager does with the whole set: files, nothing loaded."""
        names = [*COMMON, *OPEN] if self.manager == "apt" else ["nvidia-driver-cuda", "kmod-nvidia-open-dkms"]
        for name in (*names, *more):
            self.installed[name] = [version + SUFFIX[self.manager], "install", "installed"]
        for kernel in self.kernels():
            headers = f"linux-headers-{kernel}" if self.manager == "apt" else f"kernel-devel-{kernel}"
            self.installed[headers] = ["1", "install", "installed"]
            self.disk[kernel] = (version, "open")
        self.installed["dkms"] = ["3.0.11", "install", "installed"]
        (self.root / "var/lib/dkms").mkdir(parents=True, exist_ok=True)
        self.dkms = "".join(f"nvidia/{version}, {kernel}, {self.architecture}: installed\n"
                            for kernel in self.kernels())
        self.userspace(version)

    def publish(self, version: str, *names: str) -> None:
        for name in names or (*COMMON, *OPEN, "nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-imex"):
            epoch = "3:" if self.manager == "dnf" else ""
            self.repository.setdefault(name, []).insert(0, epoch + version + SUFFIX[self.manager])

    def kernels(self) -> list[str]:
        return sorted(path.name for path in (self.root / "lib/modules").iterdir())

    def request(self, **options: t.Any) -> t.Any:
        spec = {name: option.get("default") for name, option in argspec.nvidia_driver().items()}
        return argspec.request({**spec, "version": VERSION, "package_sets": SETS, "known_bad": KNOWN_BAD, **options})

    def call(self, check_mode: bool = False, **options: t.Any) -> dict[str, t.Any]:
        return configure(self.machine(), self.request(**options), check_mode)

    def ran(self, *prefix: str) -> list[tuple[str, ...]]:
        return [call for call in self.calls if call[:len(prefix)] == prefix]

    # -- tools ------------------------------------------------------------------------------------------------------

    def default(self, call: tuple[str, ...]) -> Result:
        answers: dict[tuple[str, ...], t.Callable[[tuple[str, ...]], Result]] = {
            ("uname", "-m"): lambda call: ok(f"{self.architecture}\n"),
            ("getconf", "PAGESIZE"): lambda call: ok(f"{self.page_size}\n"),
            ("dpkg-query",): self.do_dpkg, ("rpm",): self.do_rpm, ("apt-cache", "madison"): self.do_madison,
            ("dnf",): self.do_dnf, ("modinfo", "-k"): lambda call: self.modinfo(call[2]),
            ("modinfo", "nvidia"): lambda call: self.modinfo(KERNEL), ("dkms", "status"): lambda call: ok(self.dkms),
            ("mokutil", "--sb-state"): lambda call: ok(self.secure_boot) if self.secure_boot else Result((), "missing"),
            ("apt-mark", "hold"): self.do_hold, ("update-initramfs",): self.do_initramfs,
            ("dracut",): self.do_initramfs, ("modprobe",): self.do_modprobe,
            ("systemctl", "stop"): lambda call: self.do_unit(call[2], "inactive"),
            ("systemctl", "start"): lambda call: self.do_unit(call[2], "active"),
        }
        for prefix, answer in answers.items():
            if call[:len(prefix)] == prefix:
                return answer(call)
        return super().default(call)

    def modinfo(self, kernel: str) -> Result:
        if kernel not in self.disk:
            return failed(1, NOT_FOUND)
        version, flavour = self.disk[kernel]
        return ok(gpu_node.MODINFO.format(version=version, licence=LICENCES[flavour])
                  + "parm:           NVreg_CreateImexChannel0:int\nparm:           NVreg_EnableStreamMemOPs:int\n")

    def do_dpkg(self, call: tuple[str, ...]) -> Result:
        if self.manager != "apt":
            return Result((), "missing")
        lines, strangers = "", ""
        for name in call[3:]:
            found = [one for one in self.installed if (name == "*nvidia*" and "nvidia" in one) or one == name]
            lines += "".join("\t".join([one, *self.installed[one]]) + "\n" for one in found)
            strangers += "" if found else f"dpkg-query: no packages found matching {name}\n"
        return Result((), "failed", 1, lines, strangers) if strangers else ok(lines)

    def do_rpm(self, call: tuple[str, ...]) -> Result:
        if call[1] == "-qa":
            return ok("".join(f"{name}\t{one[0].split('-')[0]}\n" for name, one in self.installed.items()
                              if "nvidia" in name))
        lines, bad = "", 0
        for name in call[4:]:
            if name in self.installed:
                plain = "kernel-devel" if name.startswith("kernel-devel") else name
                lines += f"{plain}\t{name}\t{self.installed[name][0].split('-')[0]}\n"
            else:
                lines += f"package {name} is not installed\n"
                bad += 1
        return Result((), "failed" if bad else "ok", bad, lines)

    def do_madison(self, call: tuple[str, ...]) -> Result:
        return ok("".join(f" {name} | {version} | file:/srv/cuda ./ Packages\n" for name in call[2:]
                          for version in self.repository.get(name, [])))

    def do_dnf(self, call: tuple[str, ...]) -> Result:
        if "repoquery" in call:
            return ok("".join(f"{name}\t{version}\n" for name in call[6:]
                              for version in reversed(self.repository.get(name, []))))
        if "versionlock" in call:
            names = call[call.index("versionlock") + 2:]
            self.locked = [one for one in self.locked if one not in names] + (list(names) if "add" in call else [])
            self.put("/etc/dnf/plugins/versionlock.list", "# kept by dnf\n" + "".join(
                f"{name}-3:{self.installed[name][0]}.*\n" for name in self.locked))
        elif "enable" in call:
            self.put("/etc/dnf/modules.d/nvidia-driver.module",
                     f"[nvidia-driver]\nname=nvidia-driver\nstream={call[-1].split(':')[1]}\nprofiles=\nstate=enabled\n")
        else:
            (self.root / "etc/dnf/modules.d/nvidia-driver.module").unlink()
        return ok()

    def do_hold(self, call: tuple[str, ...]) -> Result:
        for name in call[2:]:
            self.installed[name][1] = "hold"
        return ok("".join(f"{name} set on hold.\n" for name in call[2:]))

    def do_initramfs(self, call: tuple[str, ...]) -> Result:
        newest = max(path.stat().st_mtime for path in (self.root / "etc/modprobe.d").iterdir())
        for path in (self.root / "boot").glob("init*"):
            os.utime(path, (newest, newest))
        return ok()

    def do_unit(self, name: str, state: str) -> Result:
        load, _active, enabled = self.units[name]
        self.units[name] = (load, state, enabled)
        return ok()

    def do_modprobe(self, call: tuple[str, ...]) -> Result:
        name = call[-1]
        if "-r" in call:
            holders = self.root / f"sys/module/{name}/holders"
            if holders.is_dir() and any(holders.iterdir()):
                return failed(1, f"modprobe: FATAL: Module {name} is in use.\n")
            for link in self.root.glob(f"sys/module/*/holders/{name}"):
                link.unlink()
            shutil.rmtree(self.root / f"sys/module/{name}", ignore_errors=True)
            if name == "nvidia":
                self.unload()
            return ok()
        if name == "nvidia" and not (self.root / "sys/module/nvidia").exists():
            self.load(*self.disk[KERNEL], self.params())
        return ok()

    def params(self) -> str:
        """What the module takes from the files of modprobe.d, in their order."""
        text = gpu_node.PARAMS
        for path in sorted((self.root / "etc/modprobe.d").glob("*.conf")):
            for word in path.read_text(encoding="utf-8").split():
                name, equals, value = word.partition("=")
                if name.startswith("NVreg_") and equals:
                    lines = [line for line in text.splitlines() if not line.startswith(f"{name[6:]}:")]
                    text = "\n".join([*lines, f"{name[6:]}: {value}"]) + "\n"
        return text


def _node(root: Path, make: t.Callable[[Path], GpuNode], architecture: str, os_release: str, manager: str,
          ) -> DriverNode:
    """The hardware of that class, bare: no driver is installed or loaded."""
    base = make(root)
    node = DriverNode(root, cards=base.cards, rails=base.rails, architecture=architecture, manager=manager)
    node.unload()
    for path in root.glob("usr/lib/*/libnvidia-ml*"):
        path.unlink()
    node.put("/etc/os-release", os_release)
    node.put("/proc/sys/kernel/osrelease", f"{KERNEL}\n")
    node.put("/proc/cmdline", "root=/dev/sda1 ro\n")
    node.kernel(KERNEL)
    node.publish(VERSION)
    return node


def bare(root: Path, os_release: str = UBUNTU, manager: str = "apt") -> DriverNode:
    """An L40S server."""
    return _node(root, gpu_node.l40s, "x86_64", os_release, manager)


def tray(root: Path) -> DriverNode:
    """A GB200 tray."""
    return _node(root, gpu_node.gb200, "aarch64", UBUNTU, "apt")


def settled(root: Path, version: str = VERSION, make: t.Callable[[Path], DriverNode] = bare) -> DriverNode:
    """As a run leaves it: installed, held, loaded; files and initramfs written."""
    node = make(root)
    node.install(version, *(["nvidia-imex"] if make is tray else []))
    node.publish(version)
    found = node.call(version=version)
    assert found["install"] == [] and found["after"]["loaded"] == version, found
    node.calls.clear()
    return node
