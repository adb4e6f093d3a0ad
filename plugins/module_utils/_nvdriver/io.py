# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read a node's packages, kernels, files and driver, and do the steps of a plan."""
from __future__ import annotations

import dataclasses
import typing as t

from .._gpu import bus_io, driver_io, parse_driver
from .._gpu.model import Package
from .._host.errors import Problem
from .._host.files import read_text, write_atomic
from .._host.machine import Machine
from .._host.runner import Result
from .._host.sysfs import Sysfs
from .._idle import io as idle_io
from .._stack import system
from . import catalog, parse, plan
from .model import (
    DGX_FILE,
    HOLDS_FILE,
    OPTIONS_FILE,
    PIN_FILE,
    VERSIONLOCK_FILE,
    File,
    KernelModule,
    Node,
    PackageSet,
    Request,
    Step,
    Use,
)

# An initramfs takes half a minute for each kernel; a unit may take its time to stop.
SLOW_SECONDS = 600.0
# A repository is asked over the network.
REPOSITORY_SECONDS = 120.0
_STREAM_FILE = "/etc/dnf/modules.d/nvidia-driver.module"


def _file(machine: Machine, path: str) -> File:
    text = read_text(machine.path(path))
    return File() if text is None else File(text, machine.path(path).stat().st_mtime)


# -- packages -------------------------------------------------------------------------------------------------------


def _only_strangers(result: Result) -> bool:
    lines = result.stderr.splitlines()
    return result.rc == 1 and all("no packages found matching" in line for line in lines)


def _others(machine: Machine, chosen: PackageSet, names: t.Sequence[str], bad: list[Problem]) -> tuple[Package, ...]:
    """Those of the set that the pattern of NVIDIA's names does not find."""
    if not names:
        return ()
    if chosen.manager == "dnf":
        result = system.tool(machine, "rpm", "-q", "--qf", parse.RPM_FORMAT, *names)
        # The exit status is the number of those that are missing.
        usable = result.state == "failed" and "not installed" in result.stdout
        return system.parsed(dataclasses.replace(result, state="ok") if usable else result, parse.rpm, bad) or ()
    result = system.tool(machine, "dpkg-query", "-W", f"-f={parse_driver.DPKG_FORMAT}", *names)
    if _only_strangers(result):
        result = dataclasses.replace(result, state="ok")
    return system.parsed(result, parse_driver.dpkg, bad) or ()


def _available(machine: Machine, chosen: PackageSet, names: t.Sequence[str], bad: list[Problem],
               ) -> dict[str, tuple[str, ...]]:
    patient = dataclasses.replace(machine, tool_timeout_seconds=max(REPOSITORY_SECONDS, machine.tool_timeout_seconds))
    if chosen.manager == "apt":
        return system.parsed(system.tool(patient, "apt-cache", "madison", *names), parse.madison, bad) or {}
    result = system.tool(patient, "dnf", "-q", "repoquery", "--available", "--qf", parse.REPOQUERY_FORMAT, *names)
    return system.parsed(result, parse.repoquery, bad) or {}


def _with_packages(machine: Machine, chosen: PackageSet, request: Request, node: Node, bad: list[Problem]) -> Node:
    known = {one.name for one in node.packages}
    names = [*(name.name for name in catalog.names(chosen, request, node)), *catalog.held_with(chosen, node)]
    packages = [*node.packages, *_others(machine, chosen, [name for name in names if name not in known], bad)]
    if chosen.manager == "dnf":
        locked = parse.locks(read_text(machine.path(VERSIONLOCK_FILE)) or "")
        packages = [dataclasses.replace(one, held=one.name in locked) for one in packages]
    node = dataclasses.replace(node, packages=tuple({one.name: one for one in packages}.values()))
    lacking = [name.name for name in plan.missing(chosen, request, node) if name.pinned]
    # dnf shows nothing of a stream that is not enabled yet.
    hidden = bool(plan.stream_steps(chosen, request, node))
    if not lacking or bad or hidden:
        return node
    return dataclasses.replace(node, available=_available(machine, chosen, lacking, bad))


# -- the node -------------------------------------------------------------------------------------------------------


def _kernel_module(machine: Machine, kernel: str, bad: list[Problem]) -> KernelModule:
    result = system.tool(machine, "modinfo", "-k", kernel, "nvidia")
    if result.state == "failed" and "not found" in result.stderr:
        return KernelModule()
    return system.parsed(result, parse.kernel_module, bad) or KernelModule()


def _images(machine: Machine, node: Node) -> dict[str, float]:
    name = "initrd.img-{}" if node.os.family == "Debian" else "initramfs-{}.img"
    paths = {kernel: machine.path(f"/boot/{name.format(kernel)}") for kernel in node.kernels}
    return {kernel: path.stat().st_mtime for kernel, path in paths.items() if path.is_file()}


def _word(machine: Machine, bad: list[Problem], *argv: str) -> str:
    return system.parsed(system.tool(machine, *argv), str.strip, bad) or ""


def _needs_page_size(request: Request) -> bool:
    return any("page_size_bytes" in row.when for row in request.known_bad)


def _driver(machine: Machine, request: Request, node: Node, bad: list[Problem]) -> Node:
    driver = driver_io.driver(machine, bad)
    driven = bus_io.driven(Sysfs(machine.path("/proc")), bad)
    users = tuple(one.name for one in system.walk_holders(Sysfs(machine.path("/sys")), ("nvidia",)))
    on, enrolled = system.secure_boot(machine, bad)
    return dataclasses.replace(
        node, driver=driver, packages=driver.packages, driven=None if driven is None else len(driven), users=users,
        modules={kernel: _kernel_module(machine, kernel, bad) for kernel in node.both_kernels},
        builds=system.builds(machine, bad), settings=driver_io.settings(machine),
        in_force=driver_io.in_force(machine), units=driver_io.units(machine, bad),
        page_size_bytes=system.parsed(system.tool(machine, "getconf", "PAGESIZE"), parse.page_size, bad)
        if _needs_page_size(request) else None, secure_boot=on, key_enrolled=enrolled)


def gpu_ids(machine: Machine) -> list[str]:
    return [one.pci_id for one in bus_io.gpus(machine, Sysfs(machine.path("/sys")))]


def is_dgx(machine: Machine) -> bool:
    """NVIDIA's own image brings the driver and updates it in step with the rest."""
    return machine.path(DGX_FILE).exists()


def gather(machine: Machine, request: Request) -> Node:
    """One read of everything. What could not be read although it is there is in the node's problems."""
    bad: list[Problem] = []
    holds = _file(machine, HOLDS_FILE)
    node = Node(
        os=system.os_release(machine, bad), architecture=_word(machine, bad, "uname", "-m"),
        is_dgx=is_dgx(machine),
        kernel=(read_text(machine.path("/proc/sys/kernel/osrelease")) or "").strip(), kernels=system.kernels(machine),
        gpus=bus_io.gpus(machine, Sysfs(machine.path("/sys"))), options_file=_file(machine, OPTIONS_FILE),
        pin_file=_file(machine, PIN_FILE), holds_file=holds, our_holds=parse.our_holds(holds.text or ""),
        enabled_stream=parse.module_stream(read_text(machine.path(_STREAM_FILE)) or ""))
    node = _driver(machine, request, dataclasses.replace(node, images=_images(machine, node)), bad)
    chosen = catalog.choose(request, node) if request.manage else None
    if chosen is not None:
        node = _with_packages(machine, chosen, request, node, bad)
    return dataclasses.replace(node, problems=tuple(bad))


def use(machine: Machine) -> Use:
    """Who would be disturbed by a reload, right now."""
    holders, unseen = bus_io.holders(machine)
    usage = idle_io.gather(machine, ())
    held = {one.pid for one in holders}
    steps = tuple(one.text() for one in usage.processes if one.is_step and one.pid not in held)
    return Use(holders, steps, unseen)


def apply(machine: Machine, step: Step) -> Result:
    verb, *rest = step.command
    if verb == "write":
        write_atomic(machine.path(rest[0]), step.text or "", step.mode)
        return Result(step.command, "ok", 0)
    return machine.run(step.command, max(SLOW_SECONDS, machine.tool_timeout_seconds))
