# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of host_info: sysfs and files first, then the tools."""
from __future__ import annotations

import dataclasses
import os
import platform
import sys
import typing as t
from dataclasses import dataclass

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from . import model, parse, tools
from .tables import GPU_CLASSES, MELLANOX, NVIDIA
from .tools import Notes

_PCI = "bus/pci/devices"
_CPU = "devices/system/cpu"
# /usr/src is where DKMS puts the sources that it builds.
PATHS = ("/", "/boot", "/var", "/usr/src")
_DMI = {"vendor": "sys_vendor", "product": "product_name", "board": "board_name", "serial": "product_serial"}


@dataclass(frozen=True)
class Process:
    """What Python knows of its own process; tests hand in another one."""

    architecture: str
    python_version: str
    python_executable: str
    uid: int

    @classmethod
    def own(cls) -> Process:
        return cls(os.uname().machine, platform.python_version(), sys.executable, os.geteuid())


def _text(machine: Machine, path: str) -> str | None:
    try:
        return (read_text(machine.path(path)) or "").strip() or None
    except OSError:
        return None


def _operating_system(machine: Machine, notes: Notes) -> dict[str, t.Any] | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = _text(machine, path)
        if text is not None:
            try:
                return parse.os_release(text)
            except ValueError as error:
                notes.trouble("os", Problem(path, str(error), "ID=...", "is the file the distribution's own?"))
                return None
    notes.why["os"] = "no os-release"
    return None


def _cpu(machine: Machine, sysfs: Sysfs) -> dict[str, t.Any]:
    """Processors that share a core are one; memory nodes of GPUs have no CPUs and do not count."""
    threads, cores, packages = 0, set(), set()
    for name in sysfs.names(_CPU):
        if name.startswith("cpu") and name[3:].isdigit():
            place = f"{_CPU}/{name}/topology"
            siblings = sysfs.read(f"{place}/thread_siblings_list").value
            # An offline processor has no topology.
            if siblings:
                threads += 1
                cores.add(siblings)
                packages.add(sysfs.read(f"{place}/physical_package_id").value)
    nodes = [name for name in sysfs.names("devices/system/node")
             if name[4:].isdigit() and sysfs.read(f"devices/system/node/{name}/cpulist").value]
    return {"model": parse.cpu_model(_text(machine, "/proc/cpuinfo") or ""), "cores": len(cores) or None,
            "threads": threads or None, "sockets": len(packages) or None, "numa_nodes": len(nodes) or None}


def _memory(machine: Machine) -> dict[str, t.Any]:
    """As slurmd counts it: all pages of the kernel, with the memory of GPUs that are NUMA nodes."""
    return {"total_mib": parse.memory_mib(_text(machine, "/proc/meminfo") or "")}


def _dmi(sysfs: Sysfs) -> dict[str, t.Any] | None:
    found = {name: sysfs.read(f"class/dmi/id/{file}").or_none() for name, file in _DMI.items()}
    return found if any(found.values()) else None


def _functions(sysfs: Sysfs) -> tuple[list[model.Gpu], list[model.Nic]]:
    gpus, nics = [], []
    for pci in sorted(sysfs.names(_PCI)):
        base = f"{_PCI}/{pci}"
        vendor = sysfs.read(f"{base}/vendor").value
        if vendor not in (NVIDIA, MELLANOX):
            continue
        pci_id = f"{vendor[2:]}:{sysfs.read(f'{base}/device').value[2:]}"
        node, pci_class = sysfs.number(f"{base}/numa_node"), sysfs.read(f"{base}/class").value
        node = None if node is None or node < 0 else node
        if vendor == NVIDIA:
            if pci_class.startswith(GPU_CLASSES):
                gpus.append(model.Gpu(pci, pci_id, node))
        # The DMA and management functions of a BlueField are no NICs; flash recovery may have any class.
        elif pci_class.startswith("0x02") or pci_id.startswith("15b3:02"):
            driver = sysfs.link_name(f"{base}/driver")
            nics.append(model.Nic(pci, pci_id, node, driver, "physfn" in sysfs.names(base)))
    return gpus, nics


def _disks(machine: Machine, notes: Notes, paths: t.Sequence[str]) -> list[dict[str, t.Any]]:
    found = []
    for path in paths:
        try:
            stat = os.statvfs(machine.path(path))
        except OSError as error:
            notes.why[f"disk {path}"] = error.strerror or str(error)
            continue
        found.append(dataclasses.asdict(model.Disk(
            path, stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize, stat.f_files, stat.f_favail)))
    return found


def _identity(machine: Machine, process: Process) -> dict[str, t.Any]:
    base = parse.base_os(_text(machine, "/etc/dgx-release") or "")
    return {"base_os": base, "architecture": process.architecture,
            "kernel": _text(machine, "/proc/sys/kernel/osrelease"),
            "python": {"version": process.python_version, "executable": process.python_executable},
            "uid": process.uid, "hostname": _text(machine, "/proc/sys/kernel/hostname"),
            "machine_id": _text(machine, "/etc/machine-id")}


def read(machine: Machine, process: Process | None = None, paths: t.Sequence[str] = PATHS) -> dict[str, t.Any]:
    """What host_info returns."""
    process = process or Process.own()
    notes, sysfs = Notes(is_root=process.uid == 0), Sysfs(machine.path("/sys"))
    gpus, nics = _functions(sysfs)
    network, routes, findings = tools.network(machine, notes)
    drivers, stack_findings = tools.drivers(machine, notes, any(nic.driver == "mlx5_core" for nic in nics))
    identity = _identity(machine, process)
    data = {
        "os": _operating_system(machine, notes), **identity, "dmi": _dmi(sysfs), "cpu": _cpu(machine, sysfs),
        "memory": _memory(machine),
        "gpus": [gpu.as_data() for gpu in gpus], "nics": [nic.as_data() for nic in nics],
        "nvlink_domain": tools.nvlink(machine, notes, bool(gpus)), "drivers": drivers, **network,
        "default_routes": [dataclasses.asdict(route) for route in routes], "lldp": tools.lldp(machine, notes),
        "time": dataclasses.asdict(tools.clock(machine, notes)),
        "names": tools.names(machine, notes, identity["hostname"] or ""),
        "disks": _disks(machine, notes, paths),
    }
    findings = [*model.route_findings(routes), *model.nic_findings(nics), *findings, *stack_findings]
    for path, error in sysfs.errors.items():
        if error in ("EACCES", "EPERM"):
            notes.needs_root.append(f"/sys/{path}")
        else:
            notes.problems.append(Problem(f"/sys/{path}", error, "a readable file", "the device is in trouble"))
    return {**data, "findings": [one.as_dict() for one in findings], "why": notes.why,
            "problems": [one.as_dict() for one in notes.problems], "needs_root": sorted(notes.needs_root)}
