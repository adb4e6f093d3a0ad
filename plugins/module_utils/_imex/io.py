# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read a node's IMEX files, unit and users, ask nvidia-imex-ctl, and do the steps of a plan."""
from __future__ import annotations

import dataclasses
import stat
import time
import typing as t

from .._gpu import bus_io, driver_io
from .._host.errors import Problem
from .._host.files import read_text, write_atomic
from .._host.machine import Machine
from .._host.runner import Result
from .._host.sysfs import Sysfs
from .._idle import io as idle_io
from .._net import parse as net_parse
from .._nvdriver.model import Step, Use
from . import parse
from .model import (
    CHANNELS,
    CONFIG_FILE,
    DAEMON,
    NODES_FILE,
    UNIT,
    Domain,
    File,
    Node,
    Unit,
    plain_address,
)

# A daemon tells its peers before it ends.
UNIT_SECONDS = 120.0
CTL = "nvidia-imex-ctl"
_BROKEN = ("it hangs on a broken domain: is nvidia-imex.service running on all nodes, and is the network between them "
           "whole?")


def _file(machine: Machine, path: str) -> File:
    text = read_text(machine.path(path))
    if text is None:
        return File()
    status = machine.path(path).stat()
    return File(text, int(status.st_mtime), stat.S_IMODE(status.st_mode))


def unit(machine: Machine, bad: list[Problem]) -> Unit:
    asked = machine.tool("systemctl", "show", "-p",
                         "LoadState,ActiveState,UnitFileState,InactiveExitTimestampMonotonic", UNIT)
    found = asked.parsed(parse.unit, bad, f"the state of {UNIT}", "run it by hand") or Unit()
    if not found.started_at:
        return found
    return dataclasses.replace(found, started_at=time.time() - (machine.monotonic() - found.started_at))


def _addresses(machine: Machine, bad: list[Problem]) -> frozenset[str]:
    asked = machine.tool("ip", "-d", "-j", "addr", "show")
    links = asked.parsed(net_parse.links, bad, "the addresses of this node", "run it by hand") or {}
    return frozenset(plain for link in links.values() for one in link.addresses
                     if (plain := plain_address(one)) and link.name != "lo")


def _strays(machine: Machine) -> tuple[str, ...]:
    """Daemons outside of the unit: the DRA driver's runs in a pod."""
    found = []
    for name in Sysfs(machine.path("/proc")).names("."):
        base = machine.path(f"/proc/{name}")
        if not name.isdigit() or (driver_io.text(machine, f"/proc/{name}/comm") or "").strip() != DAEMON:
            continue
        if UNIT not in (driver_io.text(machine, f"/proc/{name}/cgroup") or ""):
            _comm, job = idle_io.identity(base)
            found.append(f"{DAEMON} of {job} (pid {name})" if job else f"{DAEMON} of pid {name}")
    return tuple(found)


def _channels(machine: Machine) -> tuple[str, ...]:
    return tuple(f"{CHANNELS}/{name}" for name in Sysfs(machine.path(CHANNELS)).names("."))


def gather(machine: Machine) -> Node:
    bad: list[Problem] = []
    driver = driver_io.driver(machine, bad)
    return Node(unit(machine, bad), _file(machine, NODES_FILE), _file(machine, CONFIG_FILE),
                _addresses(machine, bad), driver.loaded, driver.packages, _strays(machine), _channels(machine),
                tuple(bad))


def use(machine: Machine) -> Use:
    """Who would be disturbed right now. Services that have the driver open use no channel."""
    holders, unseen = bus_io.holders(machine)
    mine = tuple(one for one in holders
                 if not one.is_service and any(file.startswith(CHANNELS) for file in one.files))
    held = {one.pid for one in mine}
    usage = idle_io.gather(machine, ())
    steps = tuple(one.text() for one in usage.processes if one.is_step and one.pid not in held)
    return Use(mine, steps, unseen)


def apply(machine: Machine, step: Step) -> Result:
    verb, *rest = step.command
    if verb == "write":
        write_atomic(machine.path(rest[0]), step.text or "", step.mode)
        return Result(step.command, "ok", 0)
    return machine.run(step.command, max(UNIT_SECONDS, machine.tool_timeout_seconds))


# -- nvidia-imex-ctl ------------------------------------------------------------------------------------------------


def _asked(result: Result, parser: t.Callable[[str], t.Any], bad: list[Problem], wanted: str) -> t.Any:
    hint = {"missing": "package nvidia-imex", "timeout": _BROKEN}.get(result.state, "IMEX_CMD_ENABLED is 0, or the "
                                                                      "daemon does not run; /var/log/nvidia-imex.log")
    return result.parsed(parser, bad, wanted, hint)


def daemon_state(machine: Machine, bad: list[Problem]) -> str | None:
    return _asked(machine.tool(CTL, "-q"), parse.daemon_state, bad, "the state of the daemon")


def domain(machine: Machine, bad: list[Problem]) -> Domain | None:
    """By JSON; by the table where this build has none, or for words that only the table's legend explains."""
    result = machine.tool(CTL, "-N", "-j")
    found: Domain | None = None
    if result.state == "ok":
        try:
            found = parse.domain_json(result.stdout)
        except ValueError:
            found = None
    if result.state in ("missing", "timeout") or (found is not None and not parse.is_unknown(found)):
        return found if found is not None else _asked(result, parse.domain_json, bad, "the state of the domain")
    notes: list[Problem] = []
    table = _asked(machine.tool(CTL, "-N"), parse.domain_text, notes, "the state of the domain")
    if table is None and found is None:
        bad += notes
    return table or found
