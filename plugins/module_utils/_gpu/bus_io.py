# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read GPUs and NICs from sysfs and procfs, and who has the driver's device files open."""
from __future__ import annotations

import os
import re
import typing as t

from .._host.errors import Problem
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._hostinfo.tables import GPU_CLASSES, NVIDIA, nic_kind
from .._idle import io as idle_io
from .._idle.model import SERVICES
from .._mlx5 import info
from .._mlx5.model import Device
from .._mlx5.sysfs import read_devices
from . import parse_driver
from .model import Driven, Holder, Nic, Pci

_PCI = "bus/pci/devices"
_GPUS = "driver/nvidia/gpus"
_BRIDGES = re.compile(r"/(pci[0-9a-f]{4,}:[0-9a-f]{2}(?:/[^/]+)*)/[^/]+$")
# In a container its root may stand before it.
_FILE = re.compile(r"(/dev/nvidia[\w/-]*)(?: \(deleted\))?$")
# What a device that has gone from the bus answers to every read [Linux include/linux/pci.h, PCI_ERROR_RESPONSE].
_GONE = b"\xff\xff\xff\xff"


def _path(machine: Machine, pci: str) -> tuple[str, ...]:
    """Host bridge and bridges above a function, as its place in /sys/devices has them."""
    match = _BRIDGES.search(os.path.realpath(machine.path(f"/sys/{_PCI}/{pci}")))
    return tuple(match.group(1).split("/")) if match else ()


def _answers(machine: Machine, pci: str) -> bool | None:
    try:
        with open(machine.path(f"/sys/{_PCI}/{pci}/config"), "rb") as stream:
            first = stream.read(len(_GONE))
    except OSError:
        return None
    return first != _GONE if len(first) == len(_GONE) else None


def _link(sysfs: Sysfs, pci: str) -> dict[str, t.Any]:
    base = f"{_PCI}/{pci}"
    return {f"{which}_{name}": parse(sysfs.read(f"{base}/{which}_link_{file}").value)
            for which in ("current", "max")
            for name, file, parse in (("speed_gts", "speed", info.speed_gts), ("width", "width", info.width))}


def gpus(machine: Machine, sysfs: Sysfs) -> tuple[Pci, ...]:
    """NVIDIA functions of a display class, in the order of their addresses; virtual functions are none."""
    found = []
    for pci in sorted(sysfs.names(_PCI)):
        base = f"{_PCI}/{pci}"
        if sysfs.read(f"{base}/vendor").value != NVIDIA:
            continue
        if not sysfs.read(f"{base}/class").value.startswith(GPU_CLASSES) or "physfn" in sysfs.names(base):
            continue
        node = sysfs.number(f"{base}/numa_node")
        found.append(Pci(
            pci, f"{NVIDIA[2:]}:{sysfs.read(f'{base}/device').value[2:]}", None if node is None or node < 0 else node,
            sysfs.link_name(f"{base}/driver"), _answers(machine, pci), _path(machine, pci), _link(sysfs, pci)))
    return tuple(found)


def _link_layer(device: Device) -> str | None:
    return device.ports[0].link_layer if device.ports else None


def nics(
    machine: Machine, sysfs: Sysfs, rails: t.Sequence[str], link_layer: str, problems: list[Problem],
) -> tuple[Nic, ...]:
    """The rails; without any the ConnectX functions of that link layer. A BlueField or VF is one only as a rail."""
    devices, troubles = read_devices(sysfs)
    problems += troubles
    known = {device.pci for device in devices}
    problems += [Problem(f"rail {number}", f"no mlx5 device {pci}", "a device on the PCI bus", "is the address right?")
                 for number, pci in enumerate(rails) if pci not in known]
    found = []
    for device in devices:
        layer = _link_layer(device)
        fits = not device.is_vf and nic_kind(device.pci_id or "") == "connectx" and layer == link_layer
        if device.pci in rails if rails else fits and device.rdma_device is not None:
            found.append(Nic(device.pci, device.rdma_device, layer, device.numa_node, _path(machine, device.pci),
                             rails.index(device.pci) if rails else None))
    return tuple(found)


def driven(procfs: Sysfs, problems: list[Problem]) -> tuple[Driven, ...] | None:
    """GPUs of the driver; None where it is not loaded. One whose file cannot be read is named all the same."""
    if not procfs.names("driver/nvidia"):
        return None
    found = []
    for name in procfs.names(_GPUS):
        reading = procfs.read(f"{_GPUS}/{name}/information")
        try:
            found.append(parse_driver.information(reading.value))
        except ValueError as error:
            found.append(Driven(name))
            problems.append(Problem(f"/proc/{_GPUS}/{name}/information", reading.error or str(error),
                                    "Model, Bus Location, Device Minor", "look at dmesg for NVRM lines"))
    return tuple(found)


def holders(machine: Machine) -> tuple[tuple[Holder, ...], int]:
    """Processes that have a device file of the driver open, and how many could not be looked at."""
    found: list[Holder] = []
    unseen = 0
    for name in Sysfs(machine.path("/proc")).names("."):
        if not name.isdigit() or int(name) == machine.pid:
            continue
        base = machine.path(f"/proc/{name}")
        files = idle_io.open_files(base / "fd")
        if files is None:
            unseen += 1
            continue
        held = tuple(dict.fromkeys(match.group(1) for path in files if (match := _FILE.search(path))))
        if held:
            comm, job = idle_io.identity(base)
            found.append(Holder(int(name), comm, job or None, held, comm in SERVICES and not job.startswith("Slurm")))
    return tuple(found), unseen
