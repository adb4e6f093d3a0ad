# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of gpu_info: sysfs and files first, then the tools; without an NVIDIA GPU no tool at all."""
from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass, field, replace

from .._host.errors import Problem
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from .._hostinfo.tables import gpu_name
from . import bus_io, driver_io, judge, judge_driver, parse, topo, xid_history
from .judge import Node
from .model import Driven, Driver, Nic, Pci, Smi, Wanted

_SMI = "nvidia-smi"
_SMI_HINT = "package nvidia-utils-BRANCH (Ubuntu), nvidia-smi (Debian) or nvidia-driver-cuda (RHEL) of the driver"


@dataclass
class Notes:
    """What could not be read, and what only root may read."""

    problems: list[Problem] = field(default_factory=list)
    needs_root: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """What nvidia-smi said. ``gpus`` None: nothing that can be used; ``library`` is NVML's version."""

    gpus: tuple[Smi, ...] | None = None
    state: int | None = None
    library: str | None = None


def _others(output: str) -> tuple[Smi, ...] | None:
    try:
        return parse.gpus(output)[1] or None
    except ValueError:
        return None


def _ask_smi(machine: Machine, driver: Driver, notes: Notes) -> Asked:
    """Not without a loaded driver: as root, nvidia-smi would load it."""
    if not driver.is_loaded:
        return Asked()
    asked = machine.tool(_SMI, "-q")
    said = f"{asked.stdout}\n{asked.stderr}"
    state = parse.error_state(asked.rc, said)
    if state is not None:
        # Of several GPUs the others may have been printed.
        return Asked(_others(asked.stdout), state, parse.library_version(said))
    hint = _SMI_HINT if asked.state == "missing" else "run it by hand; a driver in trouble hangs it, look at dmesg"
    found = asked.parsed(parse.gpus, notes.problems, "a block of text for each GPU", hint)
    if found is None:
        return Asked()
    if not found[1]:
        notes.problems.append(Problem(f"{_SMI} -q", "no block GPU in it", "a block of text for each GPU", hint))
        return Asked()
    # NVML refuses a driver of another version, so both have this one.
    return Asked(found[1], None, found[0])


def _nvlinks(machine: Machine, asked: Asked, node_kinds: t.Collection[str | None], notes: Notes) -> t.Any:
    if not asked.gpus or not {"nvl", "nvswitch"} & set(node_kinds):
        return None
    said = machine.tool(_SMI, "nvlink", "-s")
    return said.parsed(parse.nvlinks, notes.problems, "links of each GPU", "run it by hand")


def _topology(machine: Machine, asked: Asked, affinities: t.Sequence[topo.Affinity], nics: t.Sequence[Nic],
              kinds: t.Mapping[str, str | None], notes: Notes) -> list[Problem]:
    """A check of sysfs. Not on NVL boards, where every pair is SYS [mlx5-roce.md 6.3]."""
    if not asked.gpus or not nics or "nvl" in kinds.values():
        return []
    rows = machine.tool(_SMI, "topo", "-m").parsed(topo.matrix, notes.problems, "a matrix with a row for each GPU",
                                                   "the PCI tree of sysfs was taken without this check")
    return topo.disagreements(rows or (), [one.pci for one in asked.gpus], affinities, nics)


def _gpu(gpu: Pci, node: Node, near: topo.Affinity | None) -> dict[str, t.Any]:
    driven: dict[str, Driven] = {one.pci: one for one in node.driven or ()}
    smi: dict[str, Smi] = {one.pci: one for one in node.smi or ()}
    mine, said = driven.get(gpu.pci), smi.get(gpu.pci)
    uuid = (said.uuid if said else None) or (mine.uuid if mine else None)
    links = (node.nvlinks or {}).get(uuid or "")
    return {
        "pci": gpu.pci, "pci_id": gpu.pci_id, "uuid": uuid,
        "name": (said.name if said else None) or (mine.model if mine else None) or gpu_name(gpu.pci_id),
        "board": node.kinds.get(gpu.pci), "numa_node": gpu.numa_node, "driver": gpu.driver,
        "answers": gpu.answers, "pcie": gpu.pcie,
        "in_driver": None if node.driven is None else mine is not None,
        "in_nvidia_smi": None if node.smi is None else said is not None,
        "minor": mine.minor if mine else None, "firmware_version": mine.firmware_version if mine else None,
        **(said.as_data() if said else Smi.no_data()),
        "nvlinks": None if links is None else [{"link": number, "gbytes_per_second": rate}
                                               for number, rate in sorted(links.items())],
        "nics": dict(near.paths) if near else {}, "nearest_nic": near.nearest if near else None,
    }


def _driver_data(driver: Driver) -> dict[str, t.Any]:
    data = asdict(driver)
    return {**{key: value for key, value in data.items() if key not in ("options", "packages", "users")},
            "packages": [asdict(one) for one in driver.packages], "users": list(driver.users)}


def _result(node: Node, gpus: list[dict[str, t.Any]], wanted: Wanted) -> dict[str, t.Any]:
    return {
        "gpus": gpus,
        "count": {"pci": len(node.pcis), "driver": None if node.driven is None else len(node.driven),
                  "nvidia_smi": None if node.smi is None else len(node.smi), "wanted": wanted.gpu_count},
        "driver": _driver_data(node.driver),
        "parameters": {"in_force": node.in_force, "on_disk": [asdict(one) for one in node.settings]},
        "units": None if node.units is None else [asdict(one) for one in node.units],
    }


def _empty(wanted: Wanted) -> dict[str, t.Any]:
    """A node without a GPU that should have none: nothing is asked, and nothing is wrong."""
    return {**_result(Node(units=()), [], wanted), "holders": [], "xids": [], "xid_source": None, "findings": [],
            "problems": [], "needs_root": []}


def _gather(machine: Machine, gpus: tuple[Pci, ...], wanted: Wanted, notes: Notes) -> tuple[Node, Asked]:
    driver = driver_io.driver(machine, notes.problems)
    kinds = {one.pci: judge.kind(one, wanted) for one in gpus}
    asked = _ask_smi(machine, driver, notes)
    if driver.userspace is None and asked.library:
        driver = replace(driver, userspace=asked.library)
    procfs = Sysfs(machine.path("/proc"))
    node = Node(
        gpus, bus_io.driven(procfs, notes.problems), asked.gpus, asked.state, driver, driver_io.settings(machine),
        driver_io.in_force(machine), driver_io.units(machine, notes.problems),
        _nvlinks(machine, asked, kinds.values(), notes), kinds)
    return node, asked


def read(machine: Machine, rails: t.Sequence[str], link_layer: str, wanted: Wanted) -> dict[str, t.Any]:
    """What gpu_info returns."""
    notes, sysfs = Notes(), Sysfs(machine.path("/sys"))
    gpus = bus_io.gpus(machine, sysfs)
    if not gpus and not wanted.gpu_count:
        return _empty(wanted)
    node, asked = _gather(machine, gpus, wanted, notes)
    nics = bus_io.nics(machine, sysfs, rails, link_layer, notes.problems)
    affinities = topo.pair(gpus, nics, node.kinds)
    odd = _topology(machine, asked, affinities, nics, node.kinds, notes)
    found, source = driver_io.events(machine, notes.problems, notes.needs_root)
    history = xid_history.history(found)
    holders, unseen = bus_io.holders(machine)
    if unseen:
        notes.needs_root.append(f"open files of {unseen} processes")
    near = {one.gpu: one for one in affinities}
    findings = [*judge.findings(node, wanted), *judge_driver.findings(node, wanted), *odd,
                *xid_history.findings(history)]
    return {
        **_result(node, [_gpu(one, node, near.get(one.pci)) for one in gpus], wanted),
        "holders": [{**asdict(one), "files": list(one.files)} for one in holders],
        "xids": history, "xid_source": source, "findings": [one.as_dict() for one in findings],
        "problems": [one.as_dict() for one in notes.problems], "needs_root": sorted(notes.needs_root),
    }
