# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Gather a node's mlx5 state from all its sources, and carry out a plan."""
from __future__ import annotations

import dataclasses
import typing as t

from .._host.errors import AidcError, Problem
from .._host.files import remove, write_atomic
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._net import io as net_io
from .._net import plan as net_plan
from .._net.model import NetState
from .._networkd import io as networkd_io
from .._networkd import plan as networkd_plan
from . import parse, tuning_io
from .model import Device, Node, Port, Request, Step, Upper
from .sysfs import read_devices

_TOOL = "ibv_devinfo"
_HINTS = {
    "missing": "install the package ibverbs-utils (Debian, Ubuntu) or libibverbs-utils (RHEL)",
    "timeout": "the driver or firmware does not answer; look at dmesg",
    "failed": "look at dmesg and at /dev/infiniband",
}
FILE_MODE = 0o644


def read_devinfo(machine: Machine) -> tuple[dict[str, parse.Devinfo], list[Problem]]:
    result = machine.tool(_TOOL)
    wanted = "its text with an active_mtu of each port"
    if result.state != "ok":
        return {}, [Problem(_TOOL, result.why(), wanted, _HINTS[result.state])]
    try:
        return parse.devinfo(result.stdout), []
    except ValueError as error:
        hint = "is it the program of rdma-core? run it by hand"
        return {}, [Problem(_TOOL, result.unreadable(error), wanted, hint)]


def _with_devinfo(device: Device, info: parse.Devinfo) -> Device:
    ports = tuple(dataclasses.replace(port, rdma_mtu_bytes=info.active_mtu_bytes.get(port.port))
                  for port in device.ports)
    return dataclasses.replace(device, ports=ports, psid=device.psid or info.psid,
                               firmware_version=device.firmware_version or info.firmware_version)


def _add_devinfo(
    machine: Machine, devices: tuple[Device, ...]
) -> tuple[tuple[Device, ...], list[Problem], list[Problem]]:
    """Devices with their RDMA MTU; problems of single devices; problems of the tool."""
    if not any(device.rdma_device for device in devices):
        return devices, [], []
    infos, problems = read_devinfo(machine)
    if problems:
        return devices, [], problems
    lost = [Problem(device.rdma_device, f"not in the output of {_TOOL}", "a block with its hca_id", _HINTS["failed"])
            for device in devices if device.rdma_device and device.rdma_device not in infos]
    none = parse.Devinfo()
    return tuple(_with_devinfo(device, infos.get(device.rdma_device or "", none)) for device in devices), lost, []


def _all_ports(devices: tuple[Device, ...], change: t.Callable[[Port], Port]) -> tuple[Device, ...]:
    return tuple(dataclasses.replace(device, ports=tuple(change(port) for port in device.ports)) for device in devices)


def _stack(net: NetState, netdev: str) -> dict[str, t.Any]:
    """Bond and VLANs of a netdev, as fields of Port."""
    link = net.links.get(netdev)
    bond = net.links.get(link.master or "") if link is not None and link.member_kind == "bond" else None
    vlans: list[Upper] = []
    parents = [netdev, *([bond.name] if bond else [])]
    for parent in parents:
        for name, other in net.links.items():
            if other.kind == "vlan" and other.lower == parent:
                vlans.append(Upper(name, parent, other.mtu_bytes))
                parents.append(name)
    members = [name for name, other in net.links.items() if bond is not None and other.master == bond.name]
    return {"bond": bond.name if bond else None, "bond_mtu_bytes": bond.mtu_bytes if bond else None,
            "bond_members": tuple(members), "vlans": tuple(vlans)}


def _settings(machine: Machine, request: Request, devices: tuple[Device, ...]) -> dict[str, tuning_io.Have]:
    ports = {device.pci: device.ports[0] for device in devices if device.ports}
    wanted = {}
    for want in request.ports:
        port = ports.get(want.pci)
        if want.settings and port is not None and port.netdev:
            wanted[want.pci] = (port.netdev, port.admin_state, want.settings)
    return tuning_io.gather(machine, wanted)


def gather(machine: Machine, request: Request | None = None) -> Node:
    """One read of everything, and of the settings that the request names.

    What cannot be read is an entry in one of the node's lists of problems.
    """
    devices, device_problems = read_devices(Sysfs(machine.path("/sys")))
    devices, lost, rdma_problems = _add_devinfo(machine, devices)
    net = net_io.gather(machine)
    uses = net_plan.uses(net)
    devices = _all_ports(devices, lambda port: dataclasses.replace(port, **_stack(net, port.netdev or "")))
    networkd = networkd_io.gather(machine, [name for device in devices for port in device.ports
                                            if (name := port.mtu_netdev)])

    def complete(port: Port) -> Port:
        link, saved = net.links.get(port.netdev or ""), networkd.of(port.mtu_netdev)
        value, decider = networkd_plan.effective_mtu(saved)
        return dataclasses.replace(
            port, max_mtu_bytes=link.max_mtu_bytes if link else None, excluded=uses.get(port.netdev or ""),
            network_file=saved.network_file if saved else None, saved_mtu_bytes=value, saved_mtu_file=decider,
        )

    settings = _settings(machine, request, devices) if request is not None else {}
    return Node(_all_ports(devices, complete), networkd, (*device_problems, *lost), net.problems, tuple(rdma_problems),
                settings)


def _carry_out(machine: Machine, step: Step) -> Problem | None:
    """Do one step; the problem if it failed."""
    action = step.command[0]
    try:
        if action == "write":
            write_atomic(machine.path(step.command[1]), step.text, FILE_MODE)
            return None
        if action == "remove":
            remove(machine.path(step.command[1]))
            return None
    except OSError as error:
        return Problem(step.command[1], error.strerror or str(error), f"{action} to succeed", "is /etc writable?")
    result = machine.tool(*step.command)
    return None if result.state == "ok" else Problem(" ".join(step.command), result.why(), "success", step.why)


def apply(machine: Machine, steps: t.Sequence[Step]) -> None:
    """Carry out the plan; an error names what was done before it."""
    done: list[tuple[str, ...]] = []
    for step in steps:
        problem = _carry_out(machine, step)
        if problem is None:
            done.append(step.command)
            problem = networkd_io.wait_configured(machine, step.wait_for) if step.wait_for else None
        if problem is not None:
            raise AidcError([problem], done)
