# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What is wrong with GPUs and their driver. Pure; the parts of a driver stand in `judge_driver`."""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from .model import Driven, Driver, Fabric, Mode, Pci, Setting, Smi, Unit, Wanted
from .tables import (
    EVENTS,
    EXIT_STATES,
    FABRIC_MANAGER_UNIT,
    MARGIN_ACT_C,
    MARGIN_WARN_C,
    SMALL_BAR1_MIB,
    BoardKind,
    board,
)

_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"
_DRIVER = "nvidia"
_RESET = "drain the node and reset the GPU"
# States that end by themselves [driver-slurm-k8s.md 1.7, 9 row 30].
_FABRIC_HINTS = {
    "In Progress": "the switch trays have not finished; wait, CUDA hangs until then",
    "Not Started": "the GPU has not registered yet; is the fabric manager of the switch trays or of the board up?",
}


@dataclass(frozen=True)
class Node:
    """All that was read. ``smi`` None: nvidia-smi gave nothing; ``nvlinks`` None: it was not asked, or failed."""

    pcis: tuple[Pci, ...] = ()
    driven: tuple[Driven, ...] | None = None
    smi: tuple[Smi, ...] | None = None
    smi_state: int | None = None
    driver: Driver = Driver()
    settings: tuple[Setting, ...] = ()
    in_force: dict[str, str] | None = None
    # None: systemd could not be asked.
    units: tuple[Unit, ...] | None = None
    nvlinks: dict[str, dict[int, float | None]] | None = None
    kinds: dict[str, BoardKind | None] = field(default_factory=dict)


def kind(gpu: Pci, wanted: Wanted) -> BoardKind | None:
    """The class may say it; else the PCI id does. None: not known, and nothing is judged by it."""
    known = board(gpu.pci_id)
    return wanted.board or (known.kind if known else None)


def _bus(node: Node, wanted: Wanted) -> list[Problem]:
    found = []
    if wanted.gpu_count is not None and len(node.pcis) != wanted.gpu_count:
        found.append(Problem("GPUs on the PCI bus", f"{len(node.pcis)}: {_list(one.pci for one in node.pcis)}",
                             f"{wanted.gpu_count}, as the class says",
                             "a GPU that fell off the bus, or another node; look at dmesg and the BMC"))
    for one in node.pcis:
        if wanted.gpu_pci_ids and one.pci_id not in wanted.gpu_pci_ids:
            found.append(Problem(f"GPU {one.pci}", one.pci_id, f"one of {_list(wanted.gpu_pci_ids)}",
                                 "a card of another kind"))
        if one.answers is False:
            found.append(Problem(f"GPU {one.pci}", "configuration space of all ones", "an answer on the PCI bus",
                                 "it has fallen off the bus; drain the node and power it off and on"))
        if one.driver != _DRIVER and node.driver.is_loaded:
            found.append(Problem(f"GPU {one.pci}", f"driver {one.driver or 'none'}", _DRIVER,
                                 "look at dmesg for NVRM lines; vfio-pci gives it to a virtual machine"))
    return found


def _counts(node: Node) -> list[Problem]:
    """PCI bus, driver and nvidia-smi must name the same GPUs [driver-slurm-k8s.md 0.20]."""
    found = []
    bus = {one.pci for one in node.pcis if one.driver == _DRIVER}
    driven = None if node.driven is None else {one.pci for one in node.driven}
    for pci in sorted(bus - driven) if driven is not None else []:
        found.append(Problem(f"GPU {pci}", "not in /proc/driver/nvidia/gpus", "a GPU of the driver",
                             "look for Xid 79 and NVRM lines in dmesg"))
    if node.smi is None:
        return found
    listed = {one.pci for one in node.smi}
    excluded = {one.pci for one in node.driven or () if one.excluded}
    for pci in sorted((bus if driven is None else driven & bus) - listed - excluded):
        found.append(Problem(f"GPU {pci}", f"not among the {len(listed)} of nvidia-smi", "all GPUs of the driver",
                             "it fell off the bus or failed to start; look for Xids, drain the node"))
    return found + [Problem(f"GPU {pci}", "excluded (NVreg_ExcludedGpus)", "a usable GPU", "drop it from the option")
                    for pci in sorted(excluded)]


def _list(items: t.Iterable[str]) -> str:
    return ", ".join(items) or "none"


def _smi_state(node: Node) -> list[Problem]:
    if node.smi_state is None:
        return []
    got, hint = EXIT_STATES[node.smi_state]
    return [Problem("nvidia-smi", got, "a list of the GPUs", hint)]


def _pending(pci: str, what: str, mode: Mode, hint: str) -> list[Problem]:
    if mode.pending is None or mode.pending == mode.current:
        return []
    return [Problem(f"{what} of GPU {pci}", f"{mode.current}, {mode.pending} after a reset",
                    "the same now and after a reset", hint)]


def _memory(one: Smi, wanted: Wanted) -> list[Problem]:
    found = _pending(one.pci, "ECC mode", one.ecc, _RESET)
    name = f"GPU {one.pci}"
    if one.remap.pending:
        found.append(Problem(name, "row remapping pending", "none pending", _RESET))
    if one.remap.failure:
        found.append(Problem(name, "row remapping failed", "no failure",
                             "no spare rows are left; replace the GPU"))
    size = wanted.memory_total_mib
    if size is not None and one.memory_total_mib is not None and one.memory_total_mib != size:
        found.append(Problem(f"memory of GPU {one.pci}", f"{one.memory_total_mib} MiB",
                             f"{size} MiB, as the class says", "another card, or another ECC mode"))
    if one.bar1_total_mib is not None and one.bar1_total_mib <= SMALL_BAR1_MIB:
        found.append(Problem(f"BAR1 of GPU {one.pci}", f"{one.bar1_total_mib} MiB",
                             "more than the memory that RDMA registers",
                             "switch on large BARs (above 4G decoding, resizable BAR) in the firmware"))
    return found


def _heat(one: Smi) -> list[Problem]:
    found = []
    margin = one.temperature.margin_c
    if margin is not None and margin <= MARGIN_WARN_C:
        act = margin <= MARGIN_ACT_C
        found.append(Problem(f"temperature of GPU {one.pci}", f"{margin} degrees below its limit",
                             f"more than {MARGIN_ACT_C if act else MARGIN_WARN_C}",
                             "drain the node and look at cooling" if act else "look at cooling, compare neighbours"))
    reasons = {event.name: event for event in EVENTS}
    for name in one.events or ():
        if not reasons[name].normal:
            found.append(Problem(f"clocks of GPU {one.pci}", f"{name} (0x{reasons[name].bit:x}) is active",
                                 "no slowdown for heat or power", reasons[name].hint))
    return found


def _modes(one: Smi, wanted: Wanted) -> list[Problem]:
    found = _pending(one.pci, "MIG mode", one.mig, _RESET)
    if wanted.mig is not None and (one.mig.current == "Enabled") != wanted.mig:
        found.append(Problem(f"MIG mode of GPU {one.pci}", one.mig.current or "no MIG",
                             "Enabled" if wanted.mig else "Disabled", "a change needs a reset of the GPU"))
    if wanted.persistence is not None and one.persistence is not None and one.persistence != wanted.persistence:
        words = ("Disabled", "Enabled")
        found.append(Problem(f"persistence mode of GPU {one.pci}", words[one.persistence], words[wanted.persistence],
                             "the unit of nvidia-persistenced may carry --no-persistence-mode"))
    if one.is_lost or one.reset_required:
        found.append(Problem(f"GPU {one.pci}", "lost" if one.is_lost else "reset required", "a GPU that works",
                             "drain the node and power it off and on" if one.is_lost else _RESET))
    if one.recovery_action not in (None, "None"):
        found.append(Problem(f"GPU {one.pci}", f"recovery action {one.recovery_action}", "None",
                             "drain the node and do what it says"))
    return found


def _fabric_of(pci: str, fabric: Fabric | None, kind_: BoardKind | None) -> list[Problem]:
    """Four fields on NVL boards, two on HGX, none on cards [driver-slurm-k8s.md 0.4, 6.3]."""
    if kind_ not in ("nvl", "nvswitch"):
        return []
    fabric = fabric or Fabric()
    name, found = f"NVLink fabric of GPU {pci}", []
    if (fabric.state, fabric.status) != ("Completed", "Success"):
        found.append(Problem(name, f"state {fabric.state}, status {fabric.status}", "Completed, Success",
                             _FABRIC_HINTS.get(fabric.state or "", "look at the fabric manager's log")))
    elif kind_ == "nvl" and (not fabric.clique_id or fabric.cluster_uuid in (None, _NO_CLUSTER)):
        found.append(Problem(name, f"clique {fabric.clique_id}, cluster {fabric.cluster_uuid}",
                             "a clique and a cluster", "the GPU is in no NVLink domain; look at the switch trays"))
    if fabric.health.get("Summary") == "Unhealthy":
        rest = _list(f"{key} {value}" for key, value in fabric.health.items() if key != "Summary")
        found.append(Problem(name, f"Unhealthy ({rest})", "Healthy", "attached, but degraded; drain the tray"))
    return found


def _fabric(node: Node) -> list[Problem]:
    found: list[Problem] = []
    domains = set()
    for one in node.smi or ():
        kind_ = node.kinds.get(one.pci)
        found += _fabric_of(one.pci, one.fabric, kind_)
        if kind_ == "nvl" and one.fabric is not None and one.fabric.cluster_uuid not in (None, _NO_CLUSTER):
            domains.add(f"{one.fabric.cluster_uuid}.{one.fabric.clique_id}")
    if len(domains) > 1:
        found.append(Problem("NVLink domain", _list(sorted(domains)), "one for all GPUs of the node",
                             "a partition of the switch trays cuts through the tray"))
    return found


def _links(node: Node) -> list[Problem]:
    found = []
    ids = {one.pci: one.pci_id for one in node.pcis}
    for one in node.smi or () if node.nvlinks is not None else ():
        if node.kinds.get(one.pci) not in ("nvl", "nvswitch") or one.is_lost:
            continue
        links = (node.nvlinks or {}).get(one.uuid or "", {})
        known = board(ids.get(one.pci, ""))
        down = [str(number) for number, rate in links.items() if rate is None]
        least = (known.nvlinks if known else None) or len(links) or 1
        if down or len(links) < least:
            found.append(Problem(f"NVLinks of GPU {one.pci}", f"{len(links) - len(down)} active, down: {_list(down)}",
                                 f"{least} active", "look for Xids 144 to 150 (74 on older boards), and the fabric"))
    return found


def fabric_manager(node: Node) -> list[Problem]:
    """Only boards with NVSwitches have one; elsewhere it ends by itself [driver-slurm-k8s.md 0.3, 9 row 5]."""
    kinds = {kind_ for kind_ in node.kinds.values() if kind_}
    unit = next((one for one in node.units or () if one.name == FABRIC_MANAGER_UNIT and one.load == "loaded"), None)
    if not kinds or node.units is None:
        return []
    if "nvswitch" in kinds:
        if unit is None or unit.active != "active":
            return [Problem(FABRIC_MANAGER_UNIT, unit.active if unit else "not installed", "active",
                            "without it CUDA fails with error 802; its version must be the driver's")]
    elif unit is not None and (unit.active in ("active", "activating", "failed") or unit.enabled == "enabled"):
        return [Problem(FABRIC_MANAGER_UNIT, f"{unit.active}, {unit.enabled}", "not there, or disabled",
                        "this board has no NVSwitch of its own, and the fabric manager ends with "
                        "NV_WARN_NOTHING_TO_DO; disable it")]
    return []


def findings(node: Node, wanted: Wanted) -> list[Problem]:
    found = [*_bus(node, wanted), *_counts(node), *_smi_state(node)]
    for one in node.smi or ():
        found += [*_memory(one, wanted), *_modes(one, wanted), *_heat(one)]
    return [*found, *_fabric(node), *_links(node), *fabric_manager(node)]
