# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read the ports of a node from all sources, and carry out a plan."""
from __future__ import annotations

import re
import typing as t

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._mlx5.model import PCI_ADDRESS, Device
from .._mlx5.sysfs import read_devices
from . import files, parse
from .backend import Backend
from .model import DCBNL_GROUPS, Node, Port, Request, Step
from .plan import LLDPAD

CARRIER_SECONDS = 60.0
POLL_SECONDS = 0.25
# BlueField-2, -3 and -4 as the host sees them [Linux mlx5 main.c, mlx5_core_pci_table].
BLUEFIELD = {"15b3:a2d6", "15b3:a2dc", "15b3:a2df"}
_CPU_MODEL, _CPU_ENGINE = "INTERNAL_CPU_MODEL", "INTERNAL_CPU_OFFLOAD_ENGINE"


def _addresses(request: Request, devices: dict[str, Device]) -> list[Problem]:
    found, seen = [], set()
    for want in request.wants:
        if not PCI_ADDRESS.fullmatch(want.pci):
            found.append(Problem("ports", repr(want.pci), "a PCI address such as 0000:03:00.0"))
        elif want.pci in seen:
            found.append(Problem(want.pci, "listed twice", "each PCI address once"))
        elif want.pci not in devices:
            there = ", ".join(devices) or "no mlx5 device"
            found.append(Problem(want.pci, "no such mlx5 port", "an mlx5 port's PCI address", f"there is: {there}"))
        seen.add(want.pci)
    return found


def dpu_mode(machine: Machine, pci: str) -> Problem | None:
    """A BlueField whose own processors hold the port: what the host writes has no effect."""
    for tool in ("mlxconfig", "mstconfig"):
        result = machine.tool(tool, "-d", pci, "query", _CPU_MODEL, _CPU_ENGINE)
        if result.state != "missing":
            break
    values = dict(re.findall(rf"^\S?\s*({_CPU_MODEL}|{_CPU_ENGINE})\s+(\S+)", result.stdout, re.MULTILINE))
    if result.state != "ok" or _CPU_MODEL not in values:
        why = result.why() if result.state != "ok" else f"no {_CPU_MODEL} in its answer"
        return Problem(pci, f"a BlueField of unknown mode ({tool}: {why})", "one in NIC mode",
                       "install the package mstflint; in DPU mode the port is set on the DPU")
    if values[_CPU_MODEL].startswith("EMBEDDED_CPU") and not values.get(_CPU_ENGINE, "").startswith("DISABLED"):
        return Problem(pci, "a BlueField in DPU mode", "one in NIC mode",
                       "its own processors hold the port; set QoS there, or change INTERNAL_CPU_OFFLOAD_ENGINE")
    return None


def _refuse(machine: Machine, device: Device) -> Problem | None:
    """Why this function's port cannot be set at all."""
    if device.is_vf:
        return Problem(device.pci, "a virtual function", "a physical function",
                       "VFs have no QoS of their own; they have their physical port's")
    port = device.ports[0] if device.ports else None
    if port is None or port.netdev is None:
        return Problem(device.pci, "no netdev that can be told to be its own", "one netdev",
                       "its netdev is missing, in another network namespace, or one of several")
    if port.link_layer != "Ethernet":
        return Problem(f"{device.pci} ({port.netdev})", f"link layer {port.link_layer}", "Ethernet",
                       "InfiniBand has service levels of its subnet manager instead; LINK_TYPE_P1 changes the port")
    return dpu_mode(machine, device.pci) if device.pci_id in BLUEFIELD else None


def _bond(sysfs: Sysfs, netdev: str) -> str | None:
    master = sysfs.link_name(f"class/net/{netdev}/master")
    return master if master and sysfs.names(f"class/net/{master}/bonding") else None


def _rdma_device(sysfs: Sysfs, device: Device, bond: str | None, devices: t.Iterable[Device]) -> str | None:
    """The function's own RDMA device, or the one that a RoCE LAG has for all its ports."""
    if device.rdma_device or bond is None:
        return device.rdma_device
    slaves = sysfs.read(f"class/net/{bond}/bonding/slaves").value.split()
    return next((other.rdma_device for other in devices if other.rdma_device and set(other.netdevs) & set(slaves)),
                None)


def _global_pause(machine: Machine, netdev: str) -> str | None:
    """None also where ethtool cannot tell: it is a finding only, nothing that we set."""
    result = machine.tool("ethtool", "-a", netdev)
    try:
        return parse.pause(result.stdout) if result.state == "ok" else None
    except ValueError:
        return None


def _lldpad(machine: Machine) -> tuple[bool, list[Problem]]:
    result = machine.tool("systemctl", "is-active", LLDPAD)
    if result.state == "timeout":
        return False, [Problem("systemctl is-active", result.why(), f"the state of {LLDPAD}")]
    return result.stdout.strip() in ("active", "activating", "reloading"), []


def find_ports(machine: Machine, request: Request) -> Node:
    """The ports without their state: addresses, netdevs, RDMA devices, and whether they can be set at all."""
    sysfs = Sysfs(machine.path("/sys"))
    found, problems = read_devices(sysfs)
    devices = {device.pci: device for device in found}
    bad = _addresses(request, devices)
    if bad:
        # A device that could not be read is why an address is missing.
        return Node("", problems=(*bad, *problems))
    ports = {}
    for want in request.wants:
        device = devices[want.pci]
        refused = _refuse(machine, device)
        if refused is not None:
            bad.append(refused)
            continue
        netdev = str(device.ports[0].netdev)
        bond = _bond(sysfs, netdev)
        carrier = sysfs.number(f"class/net/{netdev}/carrier") == 1
        ports[want.pci] = Port(want.pci, netdev, _rdma_device(sysfs, device, bond, found), bond, carrier)
    return Node("", ports, tuple(bad))


def gather(machine: Machine, request: Request, node: Node, backend: Backend) -> Node:
    """``node`` with the state of its ports."""
    groups = {group for want in request.wants for group in want.state}
    netdevs = [port.netdev for port in node.ports.values()] if groups & set(DCBNL_GROUPS) else []
    states, problems = backend.read(machine, netdevs, groups)
    lldpad, more = _lldpad(machine) if netdevs else (False, [])
    problems += more
    ports = {}
    for want in request.wants:
        port = node.ports[want.pci]
        kernel = files.read(machine, want.pci, port.netdev, port.rdma_device, want.state)
        problems += kernel.problems
        state = {**states.get(port.netdev, {}), **kernel.state}
        unsupported = dict(kernel.unsupported)
        if port.netdev in states:
            unsupported.update({group: f"{backend.name} shows no such state of this port" for group in DCBNL_GROUPS
                                if group in want.state and group not in state})
        pause = _global_pause(machine, port.netdev) if want.lossless else None
        carrier = machine.path(f"/sys/class/net/{port.netdev}/carrier")
        ports[want.pci] = Port(port.pci, port.netdev, port.rdma_device, port.bond, _is_one(carrier), state,
                               unsupported, kernel.cnp_files, pause)
    return Node(backend.name, ports, tuple(problems), lldpad)


def _is_one(path: t.Any) -> bool:
    try:
        return bool(path.read_text(encoding="ascii").strip() == "1")
    except OSError:
        # EINVAL of a port that is down.
        return False


def _wait_carrier(machine: Machine, netdev: str) -> Problem | None:
    """The link goes down a moment after the write; so look twice before believing that it is up."""
    path, deadline, seen = machine.path(f"/sys/class/net/{netdev}/carrier"), machine.monotonic() + CARRIER_SECONDS, 0
    while machine.monotonic() < deadline:
        machine.sleep(POLL_SECONDS)
        seen = seen + 1 if _is_one(path) else 0
        if seen == 4:
            return None
    return Problem(f"carrier of {netdev}", f"none after {CARRIER_SECONDS:g} s", "the link up again after a PFC write",
                   "look at the cable and the switch port; the other ports were left alone")


def _carry_out(machine: Machine, step: Step) -> Problem | None:
    if step.command[0] == "write":
        try:
            files.write(machine, step.command[1], step.command[2])
            return None
        except OSError as error:
            return Problem(step.command[1], error.strerror or str(error), f"{step.command[2]} to be taken", step.why)
    result = machine.tool(*step.command)
    if result.state != "ok":
        return Problem(" ".join(step.command), result.why(), "success", step.why)
    return _wait_carrier(machine, step.wait_carrier) if step.wait_carrier else None


def apply(machine: Machine, steps: t.Sequence[Step]) -> None:
    """Carry out the plan; an error names what was done before it."""
    done: list[tuple[str, ...]] = []
    for step in steps:
        problem = _carry_out(machine, step)
        if problem is not None:
            # A step with a wait was carried out before the wait failed.
            raise AidcError([problem], [*done, step.command] if problem.object.startswith("carrier") else done)
        done.append(step.command)
