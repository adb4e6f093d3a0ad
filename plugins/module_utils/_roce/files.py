# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Groups that are files of the kernel: ECN and CNP of a port, ToS of RDMA-CM, traffic class of verbs.

Which files there are tells the driver: ``ecn/`` and ``tc/`` are OFED's, ``cc_params`` is in both, and RDMA-CM's
configfs needs no driver at all.
"""
from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import dataclass, field

from .._host.errors import Problem
from .._host.machine import Machine
from . import parse
from .model import Port, State

CONFIGFS = "/sys/kernel/config/rdma_cm"
_DEBUGFS = "/sys/kernel/debug/mlx5"
_NO_ECN = ("the inbox driver has no switch for ECN per priority; the firmware parameter ROCE_CC_PRIO_MASK_P1 is the "
           "way (mlx5_nvconfig)")
_NO_CNP = ("neither ecn/ of the OFED driver nor debugfs cc_params: is debugfs mounted, the kernel not locked down, "
           "mlx5_ib loaded?")
_NO_CM = "no configfs folder rdma_cm: modprobe rdma_cm, and mount configfs"
_NO_TC = ("the inbox driver cannot override the traffic class of verbs; applications set it themselves (NCCL_IB_TC)")
_NO_RDMA = "the port has no RDMA device"


@dataclass
class Found:
    state: State = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    cnp_files: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)


def _read(machine: Machine, path: str) -> str | None:
    """Text of a file; None where it is not there."""
    try:
        return machine.path(path).read_text(encoding="ascii", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _number(machine: Machine, path: str) -> int | None:
    text = _read(machine, path)
    return None if text is None else int(text, 0)


@contextlib.contextmanager
def cm_folder(machine: Machine, path: str) -> t.Iterator[None]:
    """The RDMA device's folder in configfs; one that we made goes away again, the values outlive it
    [Linux drivers/infiniband/core/cma_configfs.c]."""
    parts = path.split("/")
    folder = machine.path("/".join(parts[:6])) if path.startswith(f"{CONFIGFS}/") else None
    made = folder is not None and not folder.exists()
    if folder is not None and made:
        folder.mkdir()
    try:
        yield
    finally:
        if folder is not None and made:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _ecn_path(netdev: str, side: str, priority: int) -> str:
    return f"/sys/class/net/{netdev}/ecn/roce_{side}/enable/{priority}"


def _read_ecn(machine: Machine, netdev: str, priority: int, found: Found) -> None:
    texts = {side: _read(machine, _ecn_path(netdev, side, priority)) for side in ("np", "rp")}
    if None in texts.values():
        found.unsupported["ecn"] = _NO_ECN
    elif "" in texts.values():
        # The driver prints nothing when it cannot ask the firmware [OFED en_ecn.c]: unknown, not off.
        found.unsupported["ecn"] = "the driver shows no value: it could not ask the firmware"
    else:
        found.state["ecn"] = {"priority": priority, **{side: text == "1" for side, text in texts.items()}}


def _read_buffer_total(machine: Machine, netdev: str, found: Found) -> None:
    text = _read(machine, f"/sys/class/net/{netdev}/qos/buffer_size")
    if text is not None:
        found.state["buffer_total"] = parse.port_buffer_size(text)


def _cnp_paths(machine: Machine, netdev: str, pci: str) -> tuple[str, str, str | None] | None:
    """Files of DSCP and priority, and of the mode that says whether the priority is used."""
    ofed, inbox = f"/sys/class/net/{netdev}/ecn/roce_np", f"{_DEBUGFS}/{pci}/cc_params"
    if machine.path(f"{ofed}/cnp_dscp").exists():
        return f"{ofed}/cnp_dscp", f"{ofed}/cnp_802p_prio", None
    if machine.path(f"{inbox}/np_cnp_dscp").exists():
        return f"{inbox}/np_cnp_dscp", f"{inbox}/np_cnp_prio", f"{inbox}/np_cnp_prio_mode"
    return None


def _read_cnp(machine: Machine, netdev: str, pci: str, found: Found) -> None:
    paths = _cnp_paths(machine, netdev, pci)
    if paths is None:
        found.unsupported["cnp"] = _NO_CNP
        return
    dscp, priority, mode = paths
    found.cnp_files = (dscp, priority)
    # Mode 0 is a fixed priority; with another one it follows the marked packet [Linux mlx5 cong.c].
    fixed = mode is None or _number(machine, mode) == 0
    found.state["cnp"] = {"dscp": _number(machine, dscp), "priority": _number(machine, priority) if fixed else None}


def _cm_path(device: str) -> str:
    return f"{CONFIGFS}/{device}/ports/1/default_roce_tos"


def _read_cm_tos(machine: Machine, device: str, found: Found) -> None:
    if not machine.path(CONFIGFS).exists():
        found.unsupported["cm_tos"] = _NO_CM
        return
    path = _cm_path(device)
    with cm_folder(machine, path):
        found.state["cm_tos"] = _number(machine, path)


def _tc_path(device: str) -> str:
    return f"/sys/class/infiniband/{device}/tc/1/traffic_class"


def _read_traffic_class(machine: Machine, device: str, found: Found) -> None:
    text = _read(machine, _tc_path(device))
    if text is None:
        found.unsupported["traffic_class"] = _NO_TC
    else:
        found.state["traffic_class"] = parse.global_traffic_class(text)


def read(machine: Machine, pci: str, netdev: str, device: str | None, want: State) -> Found:
    """The wanted groups of one port."""
    found = Found()

    def attempt(group: str, reader: t.Callable[[], None]) -> None:
        if group not in want:
            return
        try:
            reader()
        except (OSError, ValueError) as error:
            text = (error.strerror if isinstance(error, OSError) else None) or str(error)
            found.problems.append(Problem(f"{group} of {pci} ({netdev})", text, "a value that can be read",
                                          "look at dmesg; is somebody else changing the port?"))

    attempt("buffer", lambda: _read_buffer_total(machine, netdev, found))
    attempt("ecn", lambda: _read_ecn(machine, netdev, want["ecn"]["priority"], found))
    attempt("cnp", lambda: _read_cnp(machine, netdev, pci, found))
    if device is None:
        found.unsupported.update({group: _NO_RDMA for group in ("cm_tos", "traffic_class") if group in want})
        return found
    attempt("cm_tos", lambda: _read_cm_tos(machine, device, found))
    attempt("traffic_class", lambda: _read_traffic_class(machine, device, found))
    return found


def writes(port: Port, group: str, want: State) -> list[tuple[str, str]]:
    """(path, value) of each file that differs. Pure."""
    value, now = want[group], port.state.get(group)
    if group == "ecn":
        return [(_ecn_path(port.netdev, side, value["priority"]), str(int(value[side]))) for side in ("np", "rp")
                if now is None or now[side] != value[side]]
    if group == "cnp":
        return [(path, str(value[key])) for key, path in zip(("dscp", "priority"), port.cnp_files)
                if now is None or now[key] != value[key]]
    return [((_cm_path if group == "cm_tos" else _tc_path)(str(port.rdma_device)), str(value))]


def write(machine: Machine, path: str, value: str) -> None:
    """Raises OSError as the kernel answers."""
    with cm_folder(machine, path):
        # No temporary file and no O_CREAT: these are not files of a disk.
        descriptor = os.open(machine.path(path), os.O_WRONLY)
        try:
            os.write(descriptor, f"{value}\n".encode("ascii"))
        finally:
            os.close(descriptor)
