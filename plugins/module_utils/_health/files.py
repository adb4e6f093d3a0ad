# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The checks that read files only: ports, GPUs, locked memory, disks."""
from __future__ import annotations

import os
import re
import typing as t

from .._host.files import read_text
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .model import Options, Result

_ACTIVE = "4: ACTIVE"
_DRIVER, _DEVICE = "/proc/driver/nvidia", re.compile(r"nvidia\d+")
_LOCKED = re.compile(r"(?m)^Max locked memory\s+(\S+)")
# Debian's binary has a name of its own behind the plain one [driver-slurm-k8s 3.2].
_SLURMD = ("slurmd", "slurmd-wlm")


def _port(sysfs: Sysfs, pci: str) -> str | None:
    """What is wrong with a port, or None. Of a bond's ports one has the RDMA device."""
    base = f"bus/pci/devices/{pci}"
    if not sysfs.names(base):
        return f"{pci}: the device is not there"
    netdevs, rdma = sysfs.names(f"{base}/net"), sysfs.names(f"{base}/infiniband")
    if not netdevs:
        return f"{pci}: it has no netdev, its driver has not taken it"
    if not rdma and not any(sysfs.link_name(f"class/net/{name}/master") for name in netdevs):
        return f"{pci} ({netdevs[0]}): it has no RDMA device"
    for device in rdma:
        state = sysfs.read(f"class/infiniband/{device}/ports/1/state").value
        if state != _ACTIVE:
            return f"{pci} ({netdevs[0]}, {device}): RDMA port is {state or 'unreadable'}"
    return None


def ports(machine: Machine, wanted: t.Sequence[str]) -> Result:
    if not wanted:
        return Result("ports", None, "the intent names no port", applies=False)
    sysfs = Sysfs(machine.path("/sys"))
    wrong = [text for pci in wanted if (text := _port(sysfs, pci))]
    return Result("ports", not wrong, ", ".join(wrong))


def _names(machine: Machine, path: str) -> list[str]:
    try:
        return sorted(os.listdir(machine.path(path)))
    except OSError:
        return []


def gpus(machine: Machine, options: Options) -> Result:
    """A GPU that fell off the bus is gone from the driver's list; its device file may stay."""
    files = [name for name in _names(machine, "/dev") if _DEVICE.fullmatch(name)]
    found = _names(machine, f"{_DRIVER}/gpus") if options.gpus_from == "driver" else files
    if options.gpus_from == "driver" and not machine.path(_DRIVER).exists():
        return Result("gpus", False, f"got no driver nvidia, wanted {options.gpus} GPUs")
    text = "" if len(found) == options.gpus else f"got {len(found)} GPUs, wanted {options.gpus}"
    return Result("gpus", not text, text)


def _slurmd(machine: Machine) -> str | None:
    """Its process: the one that runs us, else any; slurmstepd runs prologs and has the same limits."""
    named = [pid for pid in _names(machine, "/proc") if pid.isdigit()
             and (read_text(machine.path(f"/proc/{pid}/comm")) or "").strip() in _SLURMD]
    ours = str(os.getppid())
    return ours if ours in named else named[0] if named else None


def memlock(machine: Machine, options: Options) -> Result:
    """Jobs have slurmd's limit; RDMA registers memory, which must be locked."""
    pid = _slurmd(machine)
    if pid is None:
        return Result("memlock", None, "slurmd does not run")
    try:
        found = _LOCKED.search(read_text(machine.path(f"/proc/{pid}/limits")) or "")
    except OSError as error:
        return Result("memlock", None, f"its limits cannot be read: {error.strerror}")
    if found is None:
        return Result("memlock", None, "its limits cannot be read")
    least = options.memlock_bytes
    good = found[1] == "unlimited" or (least is not None and found[1].isdigit() and int(found[1]) >= least)
    wanted = "unlimited" if least is None else f"at least {least} bytes"
    return Result("memlock", good, "" if good else f"slurmd has {found[1]} bytes, wanted {wanted}")


def disk(machine: Machine, options: Options) -> Result:
    wrong = []
    for one in options.disks:
        try:
            state = os.statvfs(machine.path(one.path))
        except OSError as error:
            wrong.append(f"{one.path}: {error.strerror}")
            continue
        if state.f_flag & os.ST_RDONLY:
            wrong.append(f"{one.path}: it is mounted read-only")
        # Some file systems have no number of inodes.
        for what, free, total in (("bytes", state.f_bavail, state.f_blocks), ("inodes", state.f_favail, state.f_files)):
            if total and 100 * free < one.min_free_percent * total:
                wrong.append(f"{one.path}: {100 * free // total} % of its {what} are free, wanted "
                             f"{one.min_free_percent} %")
    return Result("disk", not wrong, ", ".join(wrong))
