# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Loading the driver that is on the disk without a reboot: whether it is needed, who is in the way, how. Pure."""
from __future__ import annotations

import typing as t

from .._gpu.model import Holder, same_version
from . import options
from .model import Node, Request, Step, Use

IMEX = "nvidia-imex.service"
# What holds the device files and is ours to stop for a moment, by the unit's name; started again in reverse
# [driver-slurm-k8s.md 1.6]. slurmd, kubelet and exporters are not: what runs below them is not known.
STOPPED = {
    "nvidia-persistenced.service": "nvidia-persistenced", "nvidia-fabricmanager.service": "nv-fabricmanager",
    IMEX: "nvidia-imex", "nvidia-dcgm.service": "nv-hostengine",
}
_COMMS = frozenset(comm[:15] for comm in STOPPED.values())
# In the order in which they go [driver-slurm-k8s.md 1.6]; gdrdrv and nvidia_fs are of other packages.
UNLOADED = ("gdrdrv", "nvidia_fs", "nvidia_peermem", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
_LOADED = ("nvidia", "nvidia_uvm")


def reason(request: Request, node: Node) -> str | None:
    """Why the loaded driver is not the one that the disk would give; None if it is, or where there is no GPU."""
    there, driver = node.on_disk(), node.driver
    if not node.gpus or there.version is None:
        return None
    if not driver.is_loaded:
        return f"no driver is loaded, {there.version} is on the disk"
    if driver.loaded and not same_version(driver.loaded, there.version):
        return f"{driver.loaded} is loaded, {there.version} is on the disk"
    if driver.flavour and there.flavour and driver.flavour != there.flavour:
        return f"the {driver.flavour} module is loaded, the {there.flavour} one is on the disk"
    other = options.not_in_force(request, node)
    return f"options are not in force: {'; '.join(other)}" if other else None


def _entry(holder: str, why: str) -> dict[str, str]:
    return {"holder": holder, "why": why}


def _of_process(holder: Holder) -> dict[str, str]:
    who = f"{holder.job} (pid {holder.pid} {holder.comm})" if holder.job else f"pid {holder.pid} {holder.comm}"
    return _entry(who, f"has {', '.join(holder.files)} open")


def _stoppable(holder: Holder) -> bool:
    return holder.is_service and holder.comm in _COMMS


def _strangers(node: Node) -> list[dict[str, str]]:
    """Modules that we do not unload: whose they are is not known."""
    return [_entry(name, "uses the module nvidia, and is none that is unloaded here") for name in node.users
            if name not in UNLOADED]


def deferred(request: Request, node: Node, use: Use) -> list[dict[str, str]]:
    """Why the driver is not reloaded now. A driver that is not loaded disturbs nobody."""
    if node.driver.nouveau:
        return [_entry("nouveau", "drives the GPUs; a reboot without it is needed")]
    if not node.driver.is_loaded:
        return []
    if request.disruption_policy == "never":
        return [_entry("disruption_policy", "is never")]
    found = _strangers(node) + [_of_process(one) for one in use.holders if not _stoppable(one)]
    if request.board == "nvl" and IMEX in _active(node) and not request.reload_in_domain:
        found.append(_entry(IMEX, "runs: the tray would drop out of its NVLink domain for the jobs of all trays; drain "
                                  "the rack, then set reload_in_domain"))
    # force does not help against open files: the kernel keeps the module.
    if request.disruption_policy == "if_idle":
        found += [_entry(text, "runs on this node") for text in use.steps]
        spare = (node.driver.references or 0) - len(node.driver.users)
        if spare > 0 and not use.holders:
            unseen = f", and {use.unseen} processes could not be looked at" if use.unseen else ""
            found.append(_entry(f"{spare} unknown references", f"hold the module nvidia{unseen}"))
    return found


def _active(node: Node) -> list[str]:
    return [one.name for one in node.units or () if one.active in ("active", "activating", "reloading")]


def _waiting(request: Request, node: Node) -> list[str]:
    """Services that found no driver when their packages came; IMEX waits for its list of nodes, and is not ours."""
    names = ["nvidia-persistenced.service", *(["nvidia-fabricmanager.service"] if request.board == "nvswitch" else [])]
    return [one.name for one in node.units or () if one.name in names and one.load == "loaded"
            and one.enabled == "enabled" and one.name not in _active(node)]


def steps(request: Request, node: Node) -> list[Step]:
    why = reason(request, node)
    if why is None:
        return []
    if not node.driver.is_loaded:
        return [*(Step(("modprobe", name), why) for name in _LOADED),
                *(Step(("systemctl", "start", name), "it is enabled, and the driver was not loaded")
                  for name in _waiting(request, node))]
    stopped = [name for name in STOPPED if name in _active(node)]
    gone = [name for name in UNLOADED if name in ("nvidia", *node.users)]
    back = dict.fromkeys((*_LOADED, *reversed(gone)))
    commands: list[t.Sequence[str]] = [
        *(("systemctl", "stop", name) for name in stopped), *(("modprobe", "-r", name) for name in gone),
        *(("modprobe", name) for name in back), *(("systemctl", "start", name) for name in reversed(stopped))]
    return [Step(tuple(command), why, "driver") for command in commands]
