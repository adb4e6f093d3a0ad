# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node below a temporary directory whose packages, kernels and driver the module rdma_stack looks at."""
from __future__ import annotations

import json
import shutil
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.machine import Machine
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._host.runner import Result

from tests.unit.plugins.fake import failed, ok

KERNEL, NEXT = "6.8.0-31-generic", "6.8.0-40-generic"
PCIS = ("0000:03:00.0", "0002:03:00.0")
UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
RHEL = 'NAME="Red Hat Enterprise Linux"\nVERSION_ID="9.4"\nID="rhel"\nID_LIKE="fedora"\n'
INBOX_SOURCE, OFED_SOURCE = "0B2A3E6C94D4B6C7F2D1A55", "5A1D60E88DC2B1D2A94C0E1"
OFED_VERSION = "25.10-1.7.1"
DKMS_NAME = "mlnx-ofed-kernel/25.10.OFED.25.10.1.7.1.1"
INBOX_HOLDERS = {"ib_core": ["ib_uverbs", "rdma_cm", "mlx5_ib"], "ib_uverbs": ["mlx5_ib", "rdma_ucm"],
                 "rdma_cm": ["rdma_ucm"], "mlx5_core": ["mlx5_ib"]}
NOT_FOUND = "modinfo: ERROR: Module mlx5_core not found.\n"


def inbox_modinfo(kernel: str) -> str:
    return (f"filename:       /lib/modules/{kernel}/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst\n"
            f"license:        Dual BSD/GPL\nsrcversion:     {INBOX_SOURCE}\nintree:         Y\n")


def ofed_modinfo(kernel: str) -> str:
    return (f"filename:       /lib/modules/{kernel}/updates/dkms/mlx5_core.ko\nbasedon:        Korg 6.8-rc4\n"
            f"version:        {OFED_VERSION}\nlicense:        Dual BSD/GPL\nsrcversion:     {OFED_SOURCE}\n")


Answer = t.Callable[[tuple[str, ...]], Result]


@dataclass
class StackNode:
    root: Path
    packages: dict[str, str] = field(default_factory=dict)
    # By kernel: inbox, ofed or nothing at all.
    disk: dict[str, str] = field(default_factory=lambda: {KERNEL: "inbox"})
    dkms: str = ""
    override: dict[str, Answer] = field(default_factory=dict)
    calls: list[tuple[str, ...]] = field(default_factory=list)
    default_device: str = "eth0"
    qps: list[dict[str, t.Any]] = field(default_factory=list)
    now: float = 0.0

    def put(self, path: str, text: str = "") -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def program(self, path: str) -> None:
        self.put(path, "#!/bin/sh\n")
        (self.root / path.lstrip("/")).chmod(0o755)

    def kernel(self, release: str) -> None:
        self.put(f"/lib/modules/{release}/modules.dep")
        self.put(f"/boot/vmlinuz-{release}")

    def load(self, kind: str, holders: dict[str, list[str]] = INBOX_HOLDERS) -> None:
        """The driver is loaded and bound; ``none``: unloaded, and no device has a netdev."""
        shutil.rmtree(self.root / "sys/module", ignore_errors=True)
        (self.root / "sys/module").mkdir(parents=True)
        for pci in PCIS:
            base = self.root / "sys/bus/pci/devices" / pci
            for name in ("net", "infiniband"):
                shutil.rmtree(base / name, ignore_errors=True)
            (base / "driver").unlink(missing_ok=True)
        if kind == "none":
            return
        if kind == "ofed":
            holders = {**holders, "mlx_compat": [*holders], "mlxdevm": ["mlx5_core"]}
        for module in {*holders, *(name for held in holders.values() for name in held)}:
            self.put(f"/sys/module/{module}/initstate", "live\n")
            (self.root / f"sys/module/{module}/holders").mkdir()
            for holder in holders.get(module, []):
                (self.root / f"sys/module/{module}/holders/{holder}").symlink_to(f"../../{holder}")
        self.put("/sys/module/mlx5_core/srcversion", f"{OFED_SOURCE if kind == 'ofed' else INBOX_SOURCE}\n")
        if kind == "ofed":
            self.put("/sys/module/mlx5_core/version", f"{OFED_VERSION}\n")
        for number, pci in enumerate(PCIS):
            base = self.root / "sys/bus/pci/devices" / pci
            (base / "driver").symlink_to("../../../drivers/mlx5_core")
            (base / "net" / f"rail{number}").mkdir(parents=True)
            (base / "infiniband" / f"mlx5_{number}").mkdir(parents=True)

    def install_ofed(self, *kernels: str) -> None:
        """What the packages leave: files, nothing loaded."""
        self.packages["doca-ofed"] = "3.2.1-044000"
        self.program("/etc/init.d/openibd")
        self.disk.update(dict.fromkeys(kernels or (KERNEL,), "ofed"))
        (self.root / "var/lib/dkms").mkdir(parents=True, exist_ok=True)
        self.dkms = "".join(f"{DKMS_NAME}, {kernel}, x86_64: installed\n" for kernel in kernels or (KERNEL,))

    # -- the machine ------------------------------------------------------------------------------------------------

    def machine(self) -> Machine:
        return Machine(self.root, self.run, self.sleep, lambda: self.now, pid=1, tool_timeout_seconds=1)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, argv: t.Sequence[str], timeout_seconds: float) -> Result:
        call = tuple(argv)
        self.calls.append(call)
        name = call[0].rsplit("/", 1)[-1].replace("-", "_")
        answer: Answer = self.override.get(name) or getattr(self, f"do_{name}")
        result = answer(call)
        return Result(call, result.state, result.rc, result.stdout, result.stderr)

    def do_dpkg_query(self, call: tuple[str, ...]) -> Result:
        strangers = [name for name in call[4:] if name not in self.packages]
        text = "".join(f"{name}\tinstalled\t{self.packages[name]}\n" for name in call[4:] if name in self.packages)
        said = "".join(f"dpkg-query: no packages found matching {name}\n" for name in strangers)
        return Result((), "failed", 1, text, said) if strangers else ok(text)

    def do_rpm(self, call: tuple[str, ...]) -> Result:
        lines = [f"{name}\t{self.packages[name]}" if name in self.packages else f"package {name} is not installed"
                 for name in call[4:]]
        bad = sum(name not in self.packages for name in call[4:])
        return Result((), "failed" if bad else "ok", bad, "\n".join(lines) + "\n")

    def do_modinfo(self, call: tuple[str, ...]) -> Result:
        kind = self.disk.get(call[2])
        if kind is None:
            return failed(1, NOT_FOUND)
        return ok(ofed_modinfo(call[2]) if kind == "ofed" else inbox_modinfo(call[2]))

    def do_ofed_info(self, call: tuple[str, ...]) -> Result:
        return ok(f"OFED-internal-{OFED_VERSION}:\n") if "doca-ofed" in self.packages else Result((), "missing")

    def do_dkms(self, call: tuple[str, ...]) -> Result:
        return ok(self.dkms)

    def do_mokutil(self, call: tuple[str, ...]) -> Result:
        return Result((), "missing")

    def do_openibd(self, call: tuple[str, ...]) -> Result:
        self.load(self.disk[KERNEL])
        return ok("Unloading HCA driver: [  OK  ]\nLoading HCA driver and Access Layer: [  OK  ]\n")

    def do_rdma(self, call: tuple[str, ...]) -> Result:
        return ok(json.dumps(self.qps))

    def do_ss(self, call: tuple[str, ...]) -> Result:
        return ok()

    def do_ip(self, call: tuple[str, ...]) -> Result:
        if "addr" in call:
            return ok(json.dumps([{"ifname": name, "ifindex": index, "addr_info": []}
                                  for index, name in enumerate(("eth0", "rail0", "rail1"), 2)]))
        return ok(json.dumps([{"dst": "default", "dev": self.default_device}] if "-4" in call else []))


def stack_node(root: Path, os_release: str = UBUNTU) -> StackNode:
    node = StackNode(root)
    node.put("/etc/os-release", os_release)
    node.put("/proc/sys/kernel/osrelease", f"{KERNEL}\n")
    node.kernel(KERNEL)
    for pci, vendor, kind in ((PCIS[0], "0x15b3", "0x020000"), (PCIS[1], "0x15b3", "0x020000"),
                              ("0000:04:00.0", "0x15b3", "0x080100"), ("0000:00:1f.0", "0x8086", "0x020000")):
        node.put(f"/sys/bus/pci/devices/{pci}/vendor", f"{vendor}\n")
        node.put(f"/sys/bus/pci/devices/{pci}/class", f"{kind}\n")
    node.load("inbox")
    return node
