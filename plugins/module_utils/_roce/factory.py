# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The one place that chooses a backend, by what is there."""
from __future__ import annotations

import typing as t

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from .._host.runner import SYSTEM_PATH
from .backend import Backend
from .backend_dcb import Dcb
from .backend_mlnx_qos import MlnxQos

BACKENDS: dict[str, type[Backend]] = {"dcb": Dcb, "mlnx_qos": MlnxQos}
CHOICES = ("auto", *BACKENDS)


def _installed(machine: Machine, name: str) -> bool:
    return any(machine.path(f"{folder}/{name}").exists() for folder in SYSTEM_PATH.split(":"))


def _ofed(machine: Machine, netdevs: t.Sequence[str]) -> bool:
    """The OFED driver has this folder, the kernel's own has not [OFED mlx5/core/en_ecn.c]."""
    return any(machine.path(f"/sys/class/net/{netdev}/ecn").exists() for netdev in netdevs)


def choose(machine: Machine, asked: str, netdevs: t.Sequence[str]) -> Backend:
    """``mlnx_qos`` beside the OFED driver that it is made for, else ``dcb``, else what there is."""
    if asked != "auto":
        return BACKENDS[asked]()
    there = [name for name in BACKENDS if _installed(machine, name)]
    if not there:
        packages = " or ".join(backend.package for backend in BACKENDS.values())
        raise AidcError([Problem("backend", f"neither {' nor '.join(BACKENDS)}", "one of them",
                                 f"install the package {packages}")])
    if "mlnx_qos" in there and ("dcb" not in there or _ofed(machine, netdevs)):
        return MlnxQos()
    return Dcb()
