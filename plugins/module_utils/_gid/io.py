# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Read GID tables and RDMA-CM's modes, and write the modes."""
from __future__ import annotations

import contextlib
import os
import typing as t
from pathlib import Path

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._mlx5.model import Device, Step
from .._mlx5.sysfs import read_devices
from .model import ROCE_TYPES, Mode, Node, Request
from .plan import CONFIGFS, TOOL, lacking, mode_path

POLL_SECONDS = 0.25
_MODES = {text: name for name, text in ROCE_TYPES.items()}
NO_DOOR = f"unsupported: no configfs ({CONFIGFS} is not there) and no {TOOL}"


@contextlib.contextmanager
def _cm_device(machine: Machine, rdma_device: str) -> t.Iterator[None]:
    """The device's folder in configfs, made if it is not there and then removed again.

    The values belong to RDMA-CM's device and outlive the folder [Linux drivers/infiniband/core/cma_configfs.c].
    """
    folder = machine.path(f"{CONFIGFS}/{rdma_device}")
    ours = not folder.exists()
    if ours:
        folder.mkdir()
    try:
        yield
    finally:
        if ours:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _mode(text: str) -> Mode:
    value = _MODES.get(text.strip())
    return Mode(value) if value else Mode(None, f"unknown mode {text.strip()[:40]!r}")


def configfs_mode(machine: Machine, device: str, port: int) -> Mode:
    try:
        with _cm_device(machine, device):
            return _mode(machine.path(mode_path(device, port)).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return Mode(None, f"{error.filename}: {error.strerror}")


def _tool_mode(machine: Machine, device: str, port: int) -> Mode:
    # It prints the value, and may exit 0 for a write that failed, so only what it prints counts.
    result = machine.tool(TOOL, "-d", device, "-p", str(port))
    return _mode(result.stdout) if result.state == "ok" else Mode(None, f"{TOOL}: {result.why()}")


def _read_modes(machine: Machine, request: Request, devices: t.Sequence[Device]) -> tuple[dict[str, Mode], str]:
    """Modes by PCI address, and the way by which they are set. Nothing is asked where the mode is left alone."""
    if request.roce_mode is None:
        return {}, ""
    wanted = [device for device in devices if device.pci in {want.pci for want in request.ports}]
    pairs = [(device.pci, device.rdma_device, device.ports[0].port)
             for device in wanted if device.rdma_device and device.ports]
    if machine.path(CONFIGFS).is_dir():
        return {pci: configfs_mode(machine, name, port) for pci, name, port in pairs}, "configfs"
    modes = {pci: _tool_mode(machine, name, port) for pci, name, port in pairs}
    if any(mode.why == f"{TOOL}: the program is not installed" for mode in modes.values()):
        return {pci: Mode(None, NO_DOOR) for pci in modes}, ""
    return modes, TOOL


def gather(machine: Machine, request: Request) -> Node:
    devices, problems = read_devices(Sysfs(machine.path("/sys")))
    modes, door = _read_modes(machine, request, devices)
    return Node(devices, modes, door, tuple(problems))


def wait_for_gids(machine: Machine, request: Request, node: Node) -> Node:
    """Read again until each port has a GID that fits.

    The kernel adds GIDs on a work queue, some time after the address [Linux drivers/infiniband/core/roce_gid_mgmt.c].
    """
    deadline = machine.monotonic() + (request.wait_seconds if request.must_have else 0.0)
    while True:
        present = {device.pci for device in node.devices}
        waiting = [want for want in lacking(request, node) if want.pci in present]
        if not waiting or machine.monotonic() >= deadline:
            return node
        machine.sleep(POLL_SECONDS)
        node = gather(machine, request)


def _write(path: Path, text: str) -> None:
    # No new file beside it: configfs takes a write to the attribute itself, in one piece.
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(descriptor, f"{text}\n".encode())
    finally:
        os.close(descriptor)


def _carry_out(machine: Machine, step: Step) -> Problem | None:
    if step.command[0] != "write":
        result = machine.tool(*step.command)
        return None if result.state == "ok" else Problem(" ".join(step.command), result.why(), "success", step.why)
    path = step.command[1]
    try:
        with _cm_device(machine, path[len(CONFIGFS) + 1:].split("/")[0]):
            _write(machine.path(path), step.text)
        return None
    except OSError as error:
        return Problem(path, error.strerror or str(error), f"{step.text!r} to be written", "run as root")


def apply(machine: Machine, steps: t.Sequence[Step]) -> None:
    done: list[tuple[str, ...]] = []
    for step in steps:
        problem = _carry_out(machine, step)
        if problem is not None:
            raise AidcError([problem], done)
        done.append(step.command)
