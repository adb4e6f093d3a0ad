# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read a node's packages, kernels and drivers, and restart the driver."""
from __future__ import annotations

import dataclasses
import os
import typing as t

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.runner import SYSTEM_PATH, Result
from .._host.sysfs import Sysfs
from .._idle import io as idle_io
from .._idle import plan as idle_plan
from .._mlx5 import stack
from .._mlx5.model import VENDOR_ID
from .._net import io as net_io
from .._net import plan as net_plan
from . import parse
from .model import DRIVER, OPENIBD, Function, Impact, Module, Node, Request, Step
from .plan import names
from .system import builds, kernels, os_release, parsed, secure_boot, tool, walk_holders

# openibd unloads and loads a dozen modules, and each card takes seconds.
RESTART_SECONDS = 300.0
_PCI = "bus/pci/devices"
_NETWORK_CLASS = "0x02"
_DPKG = ("dpkg-query", "-W", "-f", "${Package}\\t${db:Status-Status}\\t${Version}\\n")
_RPM = ("rpm", "-q", "--qf", "%{NAME}\\t%{VERSION}-%{RELEASE}\\n")


def _as_ok(result: Result) -> Result:
    return Result(result.argv, "ok", 0, result.stdout, result.stderr)


# -- packages and programs ------------------------------------------------------------------------------------------


def _only_strangers(stderr: str) -> bool:
    """dpkg-query exits 1 for names that it does not know, and says so line by line."""
    lines = stderr.splitlines()
    return bool(lines) and all("no packages found matching" in line for line in lines)


def _packages(machine: Machine, request: Request, family: str, bad: list[Problem]) -> dict[str, str]:
    wanted = names(request, family)
    if not wanted:
        return {}
    if family == "RedHat":
        result = tool(machine, *_RPM, *wanted)
        # The exit status is the number of those that are missing; each name has its line.
        if result.state == "failed" and len(result.stdout.splitlines()) >= len(wanted):
            result = _as_ok(result)
        return parsed(result, parse.rpm, bad) or {}
    result = tool(machine, *_DPKG, *wanted)
    if result.rc == 1 and _only_strangers(result.stderr):
        result = _as_ok(result)
    return parsed(result, parse.dpkg, bad) or {}


def _is_program(machine: Machine, name: str) -> bool:
    folders = [""] if "/" in name else f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}".split(":")
    paths = [machine.path(f"{folder}/{name}") for folder in folders if folder or "/" in name]
    return any(path.is_file() and os.access(path, os.X_OK) for path in paths)


# -- kernels and modules --------------------------------------------------------------------------------------------


def _module(machine: Machine, request: Request, kernel: str, bad: list[Problem]) -> Module:
    """The file that modprobe would take for that kernel."""
    result = tool(machine, "modinfo", "-k", kernel, DRIVER)
    if result.state == "missing" and request.flavour != "doca_ofed":
        return Module()
    # Without the kernel's index or without the module in it [kmod's modinfo.c].
    if result.state == "failed" and "not found" in result.stderr:
        return Module()
    return parsed(result, parse.modinfo, bad) or Module()


def _module_names(machine: Machine, sysfs: Sysfs) -> set[str]:
    """From both: a kernel may have no /proc/modules, and only modules with an ``initstate`` were loaded from a file."""
    lines = (read_text(machine.path("/proc/modules")) or "").splitlines()
    folders = [name for name in sysfs.names("module") if sysfs.read(f"module/{name}/initstate").state == "ok"]
    return {*(line.split()[0] for line in lines if line.split()), *folders}


def _loaded(machine: Machine, sysfs: Sysfs, functions: t.Sequence[Function]) -> Module:
    modules = _module_names(machine, sysfs)
    if DRIVER not in modules and not any(function.driver for function in functions):
        return Module()
    read = sysfs.read(f"module/{DRIVER}/version").or_none(), sysfs.read(f"module/{DRIVER}/srcversion").or_none()
    return Module("ofed" if set(stack.OFED_MODULES) & modules else "inbox", *read)


def _functions(sysfs: Sysfs) -> tuple[Function, ...]:
    found = []
    for pci in sorted(sysfs.names(_PCI)):
        base = f"{_PCI}/{pci}"
        if sysfs.read(f"{base}/vendor").value != VENDOR_ID or "physfn" in sysfs.names(base):
            continue
        driver = sysfs.link_name(f"{base}/driver")
        if sysfs.read(f"{base}/class").value.startswith(_NETWORK_CLASS) and driver in (None, DRIVER):
            found.append(Function(pci, driver, tuple(sysfs.names(f"{base}/net")),
                                  tuple(sysfs.names(f"{base}/infiniband")), sysfs.number(f"{base}/sriov_numvfs") or 0))
    return tuple(found)


def _package(machine: Machine, bad: list[Problem]) -> str | None:
    result = tool(machine, "ofed_info", "-s")
    return None if result.state == "missing" else parsed(result, stack.ofed_package, bad)


def gather(machine: Machine, request: Request) -> Node:
    """One read of everything. What could not be read although it is there is in the node's problems."""
    bad: list[Problem] = []
    sysfs = Sysfs(machine.path("/sys"))
    system, kernel = os_release(machine, bad), (read_text(machine.path("/proc/sys/kernel/osrelease")) or "").strip()
    functions = _functions(sysfs)
    node = Node(
        system, kernel, kernels(machine), _packages(machine, request, system.family, bad),
        missing_programs=tuple(name for name in request.programs if not _is_program(machine, name)),
        loaded=_loaded(machine, sysfs, functions), package=_package(machine, bad), builds=builds(machine, bad),
        dependants=walk_holders(sysfs), functions=functions, has_openibd=machine.path(OPENIBD).is_file(),
    )
    asked = dict.fromkeys((kernel, node.next_kernel))
    installed = {each: _module(machine, request, each, bad) for each in asked if each}
    on, enrolled = secure_boot(machine, bad)
    bad += [Problem(f"/sys/{path}", error, "a readable file", "the device or what emulates it is in trouble")
            for path, error in sysfs.errors.items()]
    return dataclasses.replace(node, installed=installed, secure_boot=on, key_enrolled=enrolled, problems=tuple(bad))


def impact(machine: Machine) -> Impact:
    """Who would be disturbed by a restart of the driver, right now."""
    net = net_io.gather(machine)
    usage = idle_io.gather(machine, ())
    return Impact(net_plan.uses(net), tuple(idle_plan.holders(usage)), usage.known, net.problems)


def apply(machine: Machine, step: Step) -> Result:
    """What the command says of itself is for the error message only: the read back tells."""
    return machine.run(step.command, max(RESTART_SECONDS, machine.tool_timeout_seconds))
