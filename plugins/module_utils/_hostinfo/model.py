# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""What host_info says of a host, and what is odd about it. Pure."""
from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass

from .._host.errors import Problem
from .tables import gpu_name, nic_kind, nic_name

# Fabric state of a GPU that is in no NVLink domain [NVML: a cluster UUID of zeros].
_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Gpu:
    pci: str
    pci_id: str
    numa_node: int | None = None

    def as_data(self) -> dict[str, t.Any]:
        return {**asdict(self), "name": gpu_name(self.pci_id)}


@dataclass(frozen=True)
class Nic:
    """A PCI function of an NVIDIA network card, with a driver or without."""

    pci: str
    pci_id: str
    numa_node: int | None = None
    driver: str | None = None
    is_vf: bool = False

    def as_data(self) -> dict[str, t.Any]:
        return {**asdict(self), "name": nic_name(self.pci_id), "kind": nic_kind(self.pci_id, self.is_vf)}


@dataclass(frozen=True)
class Route:
    """One default route; several next hops of one route are one entry each, with the same ``route``."""

    family: int
    route: int
    device: str
    gateway: str | None = None
    metric: int = 0

    def text(self) -> str:
        way = f" via {self.gateway}" if self.gateway else ""
        return f"{self.device}{way}" + (f" metric {self.metric}" if self.metric else "")


@dataclass(frozen=True)
class Neighbour:
    netdev: str
    chassis: str | None
    chassis_id: str | None
    port: str | None


@dataclass(frozen=True)
class Fabric:
    """Part "Fabric" of one GPU in ``nvidia-smi -q``."""

    state: str | None = None
    status: str | None = None
    clique_id: int | None = None
    cluster_uuid: str | None = None


@dataclass(frozen=True)
class TimeState:
    """``synchronised`` None: nobody could be asked."""

    source: str | None = None
    synchronised: bool | None = None
    offset_seconds: float | None = None
    stratum: int | None = None


@dataclass(frozen=True)
class Disk:
    """``inodes`` is 0 where the file system has no fixed number of them."""

    path: str
    size_bytes: int
    free_bytes: int
    inodes: int
    free_inodes: int


def nvlink_domain(gpus: t.Sequence[Fabric]) -> tuple[dict[str, t.Any] | None, str | None]:
    """Cluster UUID and clique of the host's GPUs, or the reason why there is none.

    They name the domain; the chassis does not [two racks may be one domain].
    """
    if not gpus:
        return None, "nvidia-smi shows no GPU with a fabric"
    if all(gpu.state in (None, "N/A") for gpu in gpus):
        return None, "the GPUs have no NVLink fabric (State N/A)"
    for number, gpu in enumerate(gpus):
        if (gpu.state, gpu.status) != ("Completed", "Success"):
            return None, f"GPU {number}: fabric state {gpu.state}, status {gpu.status}, wanted Completed and Success"
        if gpu.cluster_uuid in (None, "N/A", _NO_CLUSTER):
            return None, f"GPU {number}: no cluster UUID"
    seen = {(gpu.cluster_uuid, gpu.clique_id) for gpu in gpus}
    if len(seen) != 1:
        return None, "the GPUs name several domains: " + ", ".join(sorted(f"{uuid}.{clique}" for uuid, clique in seen))
    uuid, clique = seen.pop()
    return {"cluster_uuid": uuid, "clique_id": clique}, None


def route_findings(routes: t.Sequence[Route]) -> list[Problem]:
    """Two default routes of one family: which one is taken depends on who came first, or on a metric."""
    found = []
    for family in (4, 6):
        mine = [route for route in routes if route.family == family]
        if len({route.route for route in mine}) > 1:
            found.append(Problem(f"default route (IPv{family})", "; ".join(route.text() for route in mine), "one",
                                 "a port with DHCP that should have none? take the gateway away from all but one"))
    return found


def nic_findings(nics: t.Sequence[Nic]) -> list[Problem]:
    found = []
    for nic in nics:
        if nic_kind(nic.pci_id) == "flash_recovery":
            found.append(Problem(f"NIC {nic.pci}", f"{nic.pci_id}, flash recovery", "the id of a working card",
                                 "its firmware does not start; burn it again or replace the card"))
        elif nic.driver is None and not nic.is_vf:
            found.append(Problem(f"NIC {nic.pci}", "no driver", "mlx5_core", "look at dmesg; is the module loaded?"))
    return found
