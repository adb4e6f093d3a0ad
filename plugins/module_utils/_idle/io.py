# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Look who uses RDMA devices: rdma's queue pairs, open device files, cgroups, mounts.

Without the program rdma the files of procfs still tell all of user space, as a process has connections only through
an open /dev/infiniband/uverbsN.
"""
from __future__ import annotations

import os
import typing as t
from pathlib import Path

from .._host.files import read_text
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._net import parse as net_parse
from . import parse
from .model import Mount, Process, QueuePair, Usage

_LOOPBACK = "lo"


def _queue_pairs(machine: Machine) -> tuple[QueuePair, ...] | None:
    """None: not known. rdma exits 0 and complains where the kernel does not answer it."""
    result = machine.tool("rdma", "-j", "resource", "show", "qp")
    try:
        return parse.queue_pairs(result.stdout) if result.state == "ok" and not result.stderr.strip() else None
    except ValueError:
        return None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        # Gone meanwhile, or not ours to read.
        return b""


def _open_files(folder: Path) -> list[str] | None:
    """What the process has open; None where we may not look."""
    found = []
    try:
        for name in os.listdir(folder):
            try:
                found.append(os.readlink(folder / name))
            except FileNotFoundError:
                continue
    except (FileNotFoundError, ProcessLookupError):
        return []
    except OSError:
        return None
    return found


def _process(base: Path, pid: int, devices: t.Mapping[str, str]) -> Process | None:
    """The process if it is a step of Slurm or holds a device; raises PermissionError if it cannot be seen."""
    job, is_step = parse.cgroup_job(_bytes(base / "cgroup").decode("utf-8", errors="replace"))
    if not is_step:
        own = parse.stepd_job(_bytes(base / "cmdline"))
        job, is_step = (own, True) if own else (job, False)
    files = _open_files(base / "fd")
    names = [name for path in files or () if (name := parse.uverbs(path))]
    has_gpu = any(map(parse.is_gpu, files or ()))
    if is_step or names or has_gpu:
        job = job or parse.environment_job(_bytes(base / "environ"))
        comm = _bytes(base / "comm").decode("utf-8", errors="replace").strip() or "unknown"
        held = parse.texts(devices.get(name, name) for name in names)
        return Process(pid, comm, job, is_step, held, has_gpu)
    if files is None:
        raise PermissionError
    return None


def _processes(machine: Machine, sysfs: Sysfs) -> tuple[tuple[Process, ...], int]:
    """Those that use something, and how many could not be looked at."""
    devices = {name: sysfs.read(f"class/infiniband_verbs/{name}/ibdev").value or name
               for name in sysfs.names("class/infiniband_verbs") if name.startswith("uverbs")}
    try:
        names = sorted((entry for entry in os.listdir(machine.path("/proc")) if entry.isdigit()), key=int)
    except OSError:
        return (), 1
    found: list[Process] = []
    unseen = 0
    for name in names:
        if int(name) == machine.pid:
            continue
        try:
            process = _process(machine.path(f"/proc/{name}"), int(name), devices)
        except PermissionError:
            unseen += 1
            continue
        if process is not None:
            found.append(process)
    return _one_of_each_step(found), unseen


def _one_of_each_step(found: t.Sequence[Process]) -> tuple[Process, ...]:
    """A step has many processes: all that hold a device count, and of a step without such a one its oldest."""
    holding = {process.job for process in found if process.is_step and process.devices}
    kept: dict[t.Any, Process] = {}
    for process in found:
        if process.devices or not process.is_step:
            kept[process.pid] = process
        elif process.job not in holding:
            kept[process.job] = _worker(kept.get(process.job), process)
    return tuple(kept.values())


def _worker(first: Process | None, other: Process) -> Process:
    """To name a step by: what it runs rather than slurmstepd, and the oldest of that."""
    return other if first is None or (first.comm == "slurmstepd" != other.comm) else first


def _routes(machine: Machine, server: str) -> tuple[str, ...]:
    result = machine.tool("ip", "-j", "route", "get", server)
    try:
        devices = net_parse.route_devices(result.stdout) if result.state == "ok" else ()
    except ValueError:
        devices = ()
    return tuple(device for device in devices if device != _LOOPBACK)


def _mounts(machine: Machine, sysfs: Sysfs) -> tuple[Mount, ...]:
    found: list[tuple[str, tuple[str, ...]]] = list(
        parse.rdma_mounts(read_text(machine.path("/proc/self/mountinfo")) or ""))
    for name in sysfs.names("class/nvme"):
        base = f"class/nvme/{name}"
        server = parse.nvme_rdma_server(sysfs.read(f"{base}/transport").value, sysfs.read(f"{base}/address").value)
        if server:
            found.append((f"nvme {name} of {server}", (server,)))
    mounts = []
    for what, servers in found:
        netdevs = parse.texts(*(_routes(machine, address) for server in servers
                                if (address := net_parse.address(server))))
        mounts += [Mount(what, netdev) for netdev in netdevs] or [Mount(what)]
    return tuple(mounts)


def _devices(sysfs: Sysfs, pci: str) -> tuple[str, ...]:
    base = f"bus/pci/devices/{pci}"
    functions = [base, *(f"{base}/{name}" for name in sysfs.names(base) if name.startswith("virtfn"))]
    return parse.texts(*(sysfs.names(f"{function}/infiniband") for function in functions))


def gather(machine: Machine, pcis: t.Iterable[str]) -> Usage:
    """One reading of the node. What cannot be told is said to be unknown and never taken for idle."""
    sysfs = Sysfs(machine.path("/sys"))
    processes, unseen = _processes(machine, sysfs)
    return Usage(processes, _queue_pairs(machine), _mounts(machine, sysfs),
                 {pci: _devices(sysfs, pci) for pci in pcis}, unseen)


def open_files(folder: Path) -> list[str] | None:
    """What the process of /proc/PID/fd has open; None where we may not look."""
    return _open_files(folder)


def identity(base: Path) -> tuple[str, str]:
    """(name, job in words or "") of the process of /proc/PID."""
    job = parse.cgroup_job(_bytes(base / "cgroup").decode("utf-8", errors="replace"))[0]
    job = job or parse.stepd_job(_bytes(base / "cmdline")) or parse.environment_job(_bytes(base / "environ"))
    return _bytes(base / "comm").decode("utf-8", errors="replace").strip() or "unknown", job
