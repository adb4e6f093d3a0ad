# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Make the calls on the host: the code of the modules, the parts of it that only set what runs."""
from __future__ import annotations

import dataclasses
import typing as t

from .._gid import argspec as gid_argspec
from .._gid import configure as gid
from .._host.errors import AidcError, Problem
from .._host.lock import BOOT_TOOL, host_lock
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._intent.model import Intent
from .._mlx5 import argspec as mlx5_argspec
from .._mlx5 import configure as mlx5
from .._rail import argspec as rail_argspec
from .._rail import runtime as rail
from .._roce import argspec as roce_argspec
from .._roce import configure as roce
from .._roce import intent as roce_intent
from . import plan
from .model import Call, Deed, Present, Reason, Round
from .options import complete

# Another run, by hand or by Ansible, may stop links and wait for them.
LOCK_SECONDS = 120.0
POLL_SECONDS = 0.5
Result = dict[str, t.Any]
Tell = t.Callable[[Deed], None]
_SPECS: dict[str, t.Callable[[], dict[str, t.Any]]] = {
    "rail_network": rail_argspec.rail_network, "mlx5_port": mlx5_argspec.port, "roce_qos": roce_argspec.spec,
    "roce_gid": gid_argspec.gid,
}


def _roce(machine: Machine, options: Result, check_mode: bool) -> Result:
    request, problems = roce_intent.request(options)
    if problems:
        raise AidcError(problems)
    return roce.configure(machine, request, check_mode)


# Section -> the module's own code.
RUN: dict[str, t.Callable[[Machine, Result, bool], Result]] = {
    "rail_network": lambda machine, options, check: rail.keep(machine, rail_argspec.request(options), check),
    "mlx5_port": lambda machine, options, check: mlx5.configure(machine, mlx5_argspec.request(options), check),
    "roce_qos": _roce,
    "roce_gid": lambda machine, options, check: gid.configure(machine, gid_argspec.request(options), check),
}


def present(machine: Machine, ports: t.Sequence[str]) -> Present:
    """A netdev comes with mlx5_core, its RDMA device a moment later with mlx5_ib; of a bond's ports one has it."""
    sysfs = Sysfs(machine.path("/sys"))
    ready, lacking = set(), {}
    for pci in ports:
        base = f"bus/pci/devices/{pci}"
        netdevs = sysfs.names(f"{base}/net")
        bonded = any(sysfs.link_name(f"class/net/{name}/master") for name in netdevs)
        if not sysfs.names(base):
            lacking[pci] = "the device is not there"
        elif not netdevs:
            lacking[pci] = "it has no netdev: its driver has not taken it"
        elif not sysfs.names(f"{base}/infiniband") and not bonded:
            lacking[pci] = "it has no RDMA device"
        else:
            ready.add(pci)
    return Present(frozenset(ready), lacking)


def device_of(machine: Machine, netdev: str) -> str | None:
    """PCI address of a netdev; None where it is gone or is no function's."""
    return Sysfs(machine.path("/sys")).link_name(f"class/net/{netdev}/device")


def _attempt(machine: Machine, call: Call, check_mode: bool) -> Round:
    """One call; raises AidcError."""
    bad: list[Problem] = []
    options = complete(_SPECS[call.section](), call.options, call.section, bad)
    if bad:
        raise AidcError(bad)
    timed = dataclasses.replace(machine, tool_timeout_seconds=max(1.0, float(options["tool_timeout_seconds"])))
    try:
        result = RUN[call.section](timed, options, check_mode)
    except OSError as error:
        # A device that goes away while it is looked at.
        problem = Problem(str(error.filename or call.section), error.strerror or str(error), "an answer of the kernel")
        raise AidcError([problem]) from error
    return plan.outcome(call.section, result, check_mode)


def _make(machine: Machine, call: Call, check_mode: bool) -> Round:
    """A call, and if it fails before it did anything, each port alone."""
    try:
        return _attempt(machine, call, check_mode)
    except AidcError as error:
        if error.done:
            return plan.failure(call.section, error)
        first = plan.failure(call.section, error)
    found, failed = Round(), 0
    singles = plan.single(call)
    for one in singles:
        try:
            found += _attempt(machine, one, check_mode)
        except AidcError as error:
            failed += 1
            found += plan.failure(call.section, error)
    return found if failed < len(singles) else first


def _no_one(deed: Deed) -> None:
    """Nobody is told."""


def one_round(machine: Machine, intent: Intent, reason: Reason, check_mode: bool, tell: Tell = _no_one) -> Round:
    """All sections once; ``tell`` gets the deeds of each when it is through."""
    there = present(machine, plan.wanted_ports(intent))
    found = Round(drift=tuple(plan.lacking(intent, there, reason)))
    for call in plan.calls(intent, there.ready):
        latest = _make(machine, call, check_mode)
        for deed in latest.done:
            tell(deed)
        found += latest
    return found


def apply(machine: Machine, intent: Intent, reason: Reason, tell: Tell) -> Round:
    """Rounds until nothing differs, or those who have a part in it have had their time.

    The lock is not held between rounds, so that a run by hand can come in.
    """
    deadline = machine.monotonic() + reason.settle_seconds
    found = Round()
    while True:
        with host_lock(machine, f"{BOOT_TOOL} {reason}", LOCK_SECONDS):
            latest = one_round(dataclasses.replace(machine, locked=True), intent, reason, False, tell)
        found = Round(found.done + latest.done, latest.drift)
        if not latest.drift or machine.monotonic() >= deadline:
            return found
        machine.sleep(POLL_SECONDS)
