# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read the driver: its four versions, packages, units, module parameters, and the kernel's log."""
from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from .._host.errors import Problem
from .._host.files import read_text
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._hostinfo.parse import nvidia_version
from .._mlx5.stack import modinfo
from . import parse_driver, xid_history
from .model import Driver, Event, Package, Setting, Unit
from .tables import UNITS

_VERSION = "/proc/driver/nvidia/version"
_LIBRARY = "libnvidia-ml.so.1"
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
# Of files with one name the first folder's counts; all together are read in the order of their names [modprobe.d(5)].
_MODPROBE = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
             "/lib/modprobe.d")
_OPTION = re.compile(r"^parm:\s+NVreg_(\w+):", re.MULTILINE)
_PACKAGES = "*nvidia*"
_XID = "NVRM: Xid"


def text(machine: Machine, path: str) -> str | None:
    try:
        return read_text(machine.path(path))
    except OSError:
        return None


def _loaded(machine: Machine, problems: list[Problem]) -> dict[str, t.Any]:
    sysfs = Sysfs(machine.path("/sys"))
    proc, version = text(machine, _VERSION), sysfs.read("module/nvidia/version").or_none()
    names = sysfs.names("module/nvidia")
    found: dict[str, t.Any] = {"loaded": version, "is_loaded": bool(names) or proc is not None,
                               "references": sysfs.number("module/nvidia/refcnt"),
                               "users": tuple(sysfs.names("module/nvidia/holders")),
                               "nouveau": bool(sysfs.names("module/nouveau"))}
    if proc is not None:
        try:
            read = nvidia_version(proc)
            found.update(loaded=read["version"], flavour=read["flavour"])
        except ValueError as error:
            problems.append(Problem(_VERSION, str(error), "a line NVRM version", "is it another driver's file?"))
    return found


def _on_disk(machine: Machine, problems: list[Problem]) -> dict[str, t.Any]:
    """Without a module for the running kernel modinfo fails, which is a state and no problem."""
    asked = machine.tool("modinfo", "nvidia")
    if asked.state in ("missing", "timeout"):
        problems.append(Problem("modinfo nvidia", asked.why(), "the module on disk", "package kmod"))
    if asked.state != "ok":
        return {}
    values = modinfo(asked.stdout)
    return {"on_disk": values.get("version"),
            "on_disk_flavour": parse_driver.flavour_of_licence(values.get("license", "")),
            "options": frozenset(_OPTION.findall(asked.stdout))}


def _userspace(machine: Machine) -> str | None:
    """What the name libnvidia-ml.so.1 leads to; the tool nvidia-smi and CUDA load it by that name."""
    for folder in _LIBRARIES:
        path = machine.path(f"{folder}/{_LIBRARY}")
        if path.exists():
            return parse_driver.library_version([Path(os.path.realpath(path)).name])
    return None


def _packages(machine: Machine, problems: list[Problem]) -> tuple[Package, ...]:
    asked = machine.tool("dpkg-query", "-W", f"-f={parse_driver.DPKG_FORMAT}", _PACKAGES)
    parser: t.Callable[[str], tuple[Package, ...]] = parse_driver.dpkg
    if asked.state == "missing":
        asked, parser = machine.tool("rpm", "-qa", "--qf", parse_driver.RPM_FORMAT, _PACKAGES), parse_driver.rpm
    # dpkg-query: no package matches.
    if asked.state == "failed" and asked.rc == 1 and not asked.stdout:
        return ()
    return asked.parsed(parser, problems, "the packages of the driver", "run it by hand") or ()


def driver(machine: Machine, problems: list[Problem]) -> Driver:
    values = {**_loaded(machine, problems), **_on_disk(machine, problems)}
    return Driver(userspace=_userspace(machine), packages=_packages(machine, problems), **values)


def in_force(machine: Machine) -> dict[str, str] | None:
    found = text(machine, "/proc/driver/nvidia/params")
    return parse_driver.parameters(found) if found else None


def settings(machine: Machine) -> tuple[Setting, ...]:
    """What the next load of the module takes, in its order."""
    files: dict[str, str] = {}
    for folder in _MODPROBE:
        for name in Sysfs(machine.path(folder)).names("."):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    found: list[Setting] = []
    for name in sorted(files):
        found += parse_driver.options(text(machine, files[name]) or "", files[name])
    return (*found, *parse_driver.command_line(text(machine, parse_driver.KERNEL_COMMAND_LINE) or ""))


def _units(output: str) -> tuple[Unit, ...]:
    found = []
    for block in output.strip().split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        found.append(Unit(values["Id"], values.get("LoadState", ""), values.get("ActiveState", ""),
                          values.get("UnitFileState", "")))
    return tuple(found)


def units(machine: Machine, problems: list[Problem]) -> tuple[Unit, ...] | None:
    asked = machine.tool("systemctl", "show", "-p", "Id,LoadState,ActiveState,UnitFileState", *UNITS)

    def parse(output: str) -> tuple[Unit, ...]:
        try:
            return _units(output)
        except KeyError as error:
            raise ValueError("a block without Id") from error

    return asked.parsed(parse, problems, "the state of NVIDIA's units", "run it by hand")


def _journal(machine: Machine, needs_root: list[str]) -> tuple[Event, ...] | None:
    """None: it cannot tell. --grep exits 1 without a word where no line matches, and may not have been compiled in."""
    asked = machine.tool("journalctl", "-k", "-b", "--no-pager", "-o", "short-unix", "-g", _XID)
    # "Hint: You are currently not seeing messages from other users and the system", with exit status 0.
    if "Hint:" in asked.stderr or "permission" in asked.stderr:
        needs_root.append("journal")
        return None
    if asked.state == "ok" or (asked.state == "failed" and asked.rc == 1 and not asked.stderr.strip()):
        return xid_history.events(asked.stdout)
    return None


def events(machine: Machine, problems: list[Problem], needs_root: list[str]) -> tuple[tuple[Event, ...], str | None]:
    """(Xids since boot, where they stand). The journal keeps what the kernel's ring has lost."""
    found = _journal(machine, needs_root)
    if found is not None:
        return found, "journal"
    ring = machine.tool("dmesg", "--time-format", "iso")
    if ring.state == "ok":
        return xid_history.events(ring.stdout), "dmesg"
    if "not permitted" in ring.stderr:
        needs_root.append("dmesg")
    else:
        problems.append(Problem("dmesg", ring.why(), "the kernel's log", "the journal told nothing either"))
    return (), None
