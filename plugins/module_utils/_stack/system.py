# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read what decides about every driver of a node: distribution, kernels, builds of DKMS, Secure Boot."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.runner import Result
from .._host.sysfs import Sysfs
from . import parse
from .model import HELD, MOK_CERTIFICATES, Build, Dependant, Os, kernel_order

T = t.TypeVar("T")
_HINTS = {
    "dpkg-query": "is it a Debian or Ubuntu? what does dpkg --audit say?",
    "rpm": "is it a RHEL? the database of rpm may be locked or broken",
    "modinfo": "install the package kmod",
    "dkms": "run it by hand",
    "ofed_info": "run it by hand",
    "mokutil": "run it by hand",
}


def parsed(result: Result, parser: t.Callable[[str], T], bad: list[Problem]) -> T | None:
    """The parsed answer of a tool that ended as it should; else an entry in ``bad``."""
    return result.parsed(parser, bad, "its usual output", _HINTS.get(result.argv[0], ""))


def tool(machine: Machine, *argv: str) -> Result:
    """A tool's result under the words that it was called with."""
    result = machine.tool(*argv)
    return Result(tuple(argv), result.state, result.rc, result.stdout, result.stderr)


def os_release(machine: Machine, bad: list[Problem]) -> Os:
    path = "/etc/os-release"
    try:
        return parse.os_release(read_text(machine.path(path)) or "")
    except ValueError as error:
        bad.append(Problem(path, str(error), "ID=... and its other lines"))
        return Os()


def kernels(machine: Machine) -> tuple[str, ...]:
    """Kernels with modules and, where /boot has any kernel, with one there: the others cannot be booted."""
    modules, boot = machine.path("/lib/modules"), machine.path("/boot")
    found = {path.parent.name for name in ("modules.dep", "kernel") for path in modules.glob(f"*/{name}")}
    images = {path.name[len("vmlinuz-"):] for path in boot.glob("vmlinuz-*")} if boot.is_dir() else set()
    return tuple(sorted(found & images if images else found, key=kernel_order))


def builds(machine: Machine, bad: list[Problem]) -> tuple[Build, ...]:
    if not machine.path("/var/lib/dkms").is_dir():
        return ()
    result = tool(machine, "dkms", "status")
    return () if result.state == "missing" else parsed(result, parse.dkms, bad) or ()


def secure_boot(machine: Machine, bad: list[Problem]) -> tuple[bool | None, bool | None]:
    """Whether it is on, and whether the firmware knows the key of DKMS. Without UEFI mokutil fails: not told."""
    result = tool(machine, "mokutil", "--sb-state")
    if result.state in ("missing", "failed"):
        return None, None
    on = parsed(result, parse.secure_boot, bad)
    if not on:
        return on, None
    there = [path for path in MOK_CERTIFICATES if machine.path(path).exists()]
    return on, any("is already enrolled" in machine.tool("mokutil", "--test-key", path).stdout for path in there)


def walk_holders(sysfs: Sysfs, roots: t.Sequence[str] = HELD) -> tuple[Dependant, ...]:
    """All modules that hold one of ``roots``, itself or through others, each once, with what it holds."""
    uses: dict[str, list[str]] = {}
    waiting, seen = list(roots), set[str]()
    while waiting:
        module = waiting.pop(0)
        if module in seen:
            continue
        seen.add(module)
        for holder in sysfs.names(f"module/{module}/holders"):
            uses.setdefault(holder, []).append(module)
            waiting.append(holder)
    return tuple(Dependant(name, tuple(held)) for name, held in uses.items())
