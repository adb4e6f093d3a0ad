# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Which class a host is of, by what its hardware is: GPU ids first, then architecture and NICs. Pure.

A host that fits no class, or several, is unknown and stays so: nothing is guessed.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._host.errors import Problem
from .model import Host, NodeClass, Port


@dataclass(frozen=True)
class Verdict:
    """``why``: what decided, or why the host is unknown."""

    node_class: NodeClass | None
    why: str
    findings: tuple[Problem, ...] = ()


def nics(host: Host, one: NodeClass) -> list[Port]:
    """The host's cards of the class's ids."""
    return [port for port in host.ports if port.is_rail_hardware and port.pci_id in one.nic_pci_ids]


def gpu_text(host: Host) -> str:
    """``4 x GB200 (10de:2941)``."""
    counts: dict[str, int] = {}
    for _pci, pci_id, name in host.gpus:
        text = f"{name} ({pci_id})" if name else pci_id
        counts[text] = counts.get(text, 0) + 1
    return ", ".join(f"{count} x {text}" for text, count in counts.items()) or "none"


def differences(host: Host, one: NodeClass) -> list[Problem]:
    """Where the host is not what the class says; rails have their own, see rails.choose."""
    found = []
    if one.architecture and host.architecture != one.architecture:
        found.append(Problem("architecture", str(host.architecture), one.architecture, "not this class, or a lab"))
    odd = [gpu for gpu in host.gpus if gpu[1] not in one.gpu_pci_ids]
    if len(host.gpus) != one.gpu_count:
        found.append(Problem("GPUs", f"{len(host.gpus)}: {gpu_text(host)}", str(one.gpu_count),
                             "a GPU that fell off the bus, or another tray; look at dmesg and the BMC"))
    elif odd and one.gpu_pci_ids:
        found.append(Problem("GPUs", gpu_text(host), f"only {', '.join(one.gpu_pci_ids)}", "a card of another kind"))
    if one.cpu_cores and host.cores != one.cpu_cores:
        found.append(Problem("CPU cores", str(host.cores), str(one.cpu_cores), "other processors, or some are offline"))
    return found


def _by_gpu(host: Host, classes: t.Sequence[NodeClass]) -> Verdict:
    ids = {pci_id for _pci, pci_id, _name in host.gpus}
    fitting = [one for one in classes if ids & set(one.gpu_pci_ids)]
    if not fitting:
        known = ", ".join(f"{one.name} {' '.join(one.gpu_pci_ids)}" for one in classes if one.gpu_pci_ids) or "none"
        problem = Problem(f"GPU {host.gpus[0][0]}", gpu_text(host), f"a GPU of a class: {known}",
                          "write a class for it, or take the host out")
        return Verdict(None, "its GPUs are of no class", (problem,))
    fewest = min(len(differences(host, one)) for one in fitting)
    best = [one for one in fitting if len(differences(host, one)) == fewest]
    if len(best) > 1:
        return _several(best)
    return Verdict(best[0], f"GPU {', '.join(sorted(ids & set(best[0].gpu_pci_ids)))}")


def _several(fitting: t.Sequence[NodeClass]) -> Verdict:
    names = " and ".join(one.name for one in fitting)
    problem = Problem("class", names, "one", "make the class files differ, or put the host into a group by hand")
    return Verdict(None, f"it fits {names} alike", (problem,))


def _fits_without_gpu(host: Host, one: NodeClass) -> bool:
    """The architecture and the cards, all of them; with fewer cards the number of cores must speak for the class.

    More cards than the class has are another machine: a GPU node that lost its GPUs must not end here.
    """
    if one.gpu_pci_ids or one.gpu_count or one.architecture not in ("", host.architecture):
        return False
    have = len(nics(host, one))
    same_cores = bool(one.cpu_cores) and host.cores == one.cpu_cores
    if not one.rail_count:
        return same_cores
    return have == one.rail_count or have < one.rail_count and same_cores


def classify(host: Host, classes: t.Sequence[NodeClass]) -> Verdict:
    if host.gpus:
        verdict = _by_gpu(host, classes)
    else:
        fitting = [one for one in classes if _fits_without_gpu(host, one)]
        if len(fitting) > 1:
            verdict = _several(fitting)
        elif fitting:
            verdict = Verdict(fitting[0], f"no GPU, {host.architecture}, {len(nics(host, fitting[0]))} NIC")
        else:
            cards = ", ".join(port.pci_id for port in host.ports if port.is_rail_hardware) or "none"
            problem = Problem("class", f"no GPU, {host.architecture}, NICs: {cards}", "the hardware of a class",
                              "no node of the cluster? then take it out; else look for GPUs that fell off the bus")
            verdict = Verdict(None, "its hardware is of no class", (problem,))
    if verdict.node_class is None:
        return verdict
    return Verdict(verdict.node_class, verdict.why, tuple(differences(host, verdict.node_class)))
