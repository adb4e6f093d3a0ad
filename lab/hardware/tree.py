# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated part of sysfs as a tree of names: PCI functions, RDMA devices and their attributes.

Which files there are and what they say: mlx5-roce.md 1.1, 1.4; Documentation/ABI/stable/sysfs-class-infiniband;
Documentation/ABI/testing/sysfs-bus-pci.
"""
from __future__ import annotations

import errno
import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

from lab.hardware.gids import Gid
from lab.hardware.model import Node, Port
from lab.hardware.spec import VENDOR_ID, RailSpec

SUBSYSTEM_ID = "0x0041"
ETHERNET_CLASS = 0x020000
HW_COUNTERS = (
    "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "np_cnp_sent", "np_ecn_marked_roce_packets",
    "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error", "req_cqe_flush_error",
    "req_remote_access_errors", "req_remote_invalid_request", "resp_cqe_error", "resp_cqe_flush_error",
    "resp_local_length_error", "resp_remote_access_errors", "rnr_nak_retry_err", "roce_adp_retrans",
    "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans", "rp_cnp_handled",
    "rp_cnp_ignored", "rx_atomic_requests", "rx_icrc_encapsulated", "rx_read_requests", "rx_write_requests",
)
# port_{xmit,rcv}_data count 4-byte units (mlx5-roce.md 1.1).
COUNTERS: dict[str, tuple[str, int]] = {
    "port_xmit_data": ("tx_bytes", 4), "port_rcv_data": ("rx_bytes", 4), "port_xmit_packets": ("tx_packets", 1),
    "port_rcv_packets": ("rx_packets", 1), "port_xmit_discards": ("tx_dropped", 1), "port_rcv_errors": ("rx_errors", 1),
}


@dataclass(frozen=True)
class File:
    """``show`` gives the content at the time of reading; it raises OSError where the kernel does."""

    show: Callable[[], bytes]
    mode: int = 0o444


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Real:
    """A folder of the real sysfs, seen through here; ``links`` are added or replaced in it."""

    path: str
    links: dict[str, str]


Entry = File | Link | Real


def text(value: object) -> File:
    return File(lambda: f"{value}\n".encode())


def computed(function: Callable[[], object]) -> File:
    return File(lambda: f"{function()}\n".encode())


def _filled(gid: Gid | None, what: Callable[[Gid], str]) -> str:
    # Reading type or netdev of an empty slot fails; a reader must expect it (mlx5-roce.md 1.2).
    if gid is None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return what(gid)


def pci_config(rail: RailSpec) -> bytes:
    """The first 256 bytes of configuration space; lspci wants at least the 64 of the header."""
    header = struct.pack("<HHHHB3sBBBB", int(VENDOR_ID, 16), int(rail.device_id, 16), 0x0406, 0x0000, 0,
                         ETHERNET_CLASS.to_bytes(3, "little"), 0x10, 0, 0, 0)
    header = header.ljust(0x2C, b"\0") + struct.pack("<HH", int(VENDOR_ID, 16), int(SUBSYSTEM_ID, 16))
    return header.ljust(256, b"\0")


def _pci(rail: RailSpec) -> dict[str, Entry]:
    top, vendor, device = rail.pci_path, VENDOR_ID, rail.device_id
    uevent = (f"DRIVER=mlx5_core\nPCI_CLASS={ETHERNET_CLASS:X}\nPCI_ID={vendor[2:].upper()}:{device[2:].upper()}\n"
              f"PCI_SUBSYS_ID={vendor[2:].upper()}:{SUBSYSTEM_ID[2:].upper()}\nPCI_SLOT_NAME={rail.pci}")
    files: dict[str, Entry] = {
        "vendor": text(vendor), "device": text(device), "subsystem_vendor": text(vendor),
        "subsystem_device": text(SUBSYSTEM_ID), "class": text(f"0x{ETHERNET_CLASS:06x}"), "revision": text("0x00"),
        "config": File(lambda: pci_config(rail), 0o644), "numa_node": text(rail.numa_node), "irq": text(0),
        "resource": text("\n".join([" ".join(["0x0000000000000000"] * 3)] * 7)), "uevent": text(uevent),
        "enable": text(1), "current_link_speed": text(rail.pcie_speed), "max_link_speed": text(rail.pcie_speed),
        "current_link_width": text(rail.pcie_width), "max_link_width": text(rail.pcie_width),
        "driver": Link("../../../bus/pci/drivers/mlx5_core"), "subsystem": Link("../../../bus/pci"),
    }
    return {f"{top}/{name}": entry for name, entry in files.items()}


def _port(node: Node, rdma: str, port: Port) -> dict[str, Entry]:
    files: dict[str, Entry] = {
        "state": computed(lambda: "{}: {}".format(*port.state)),
        "phys_state": computed(lambda: "{}: {}".format(*port.phys_state)),
        "rate": computed(lambda: port.rate), "link_layer": text("Ethernet"), "lid": text("0x0"), "sm_lid": text("0x0"),
        "lid_mask_count": text(0), "sm_sl": text(0), "has_smi": text(0), "cap_mask": text("0x04010000"),
        "hw_counters/lifespan": text(12),
    }
    for name in HW_COUNTERS:
        files[f"hw_counters/{name}"] = text(0)
    for name, (statistic, unit) in COUNTERS.items():
        files[f"counters/{name}"] = computed(lambda s=statistic, u=unit: port.counter(s) // u)  # type: ignore[misc]
    for index in range(len(port.gids)):
        files[f"gids/{index}"] = computed(lambda i=index: node.gid_value(rdma, i))  # type: ignore[misc]
        files[f"gid_attrs/types/{index}"] = computed(
            lambda i=index: _filled(node.gid(rdma, i), lambda gid: gid.type))  # type: ignore[misc]
        files[f"gid_attrs/ndevs/{index}"] = computed(
            lambda i=index: _filled(node.gid(rdma, i), lambda _gid: port.rail.netdev))  # type: ignore[misc]
    return {f"ports/1/{name}": entry for name, entry in files.items()}


def _rdma(node: Node, rail: RailSpec, port: Port) -> dict[str, Entry]:
    top = f"{rail.pci_path}/infiniband/{rail.rdma}"
    files: dict[str, Entry] = {
        "fw_ver": text(rail.firmware), "board_id": text(rail.board_id), "hca_type": text(rail.hca_type),
        "hw_rev": text(0), "node_type": text("1: CA"), "node_guid": text(rail.guid), "sys_image_guid": text(rail.guid),
        "node_desc": text(rail.rdma), "device": Link(f"../../../{rail.pci}"),
        "subsystem": Link("../../../../../class/infiniband"), "uevent": text(f"NAME={rail.rdma}"),
        **_port(node, rail.rdma, port),
    }
    return {f"{top}/{name}": entry for name, entry in files.items()}


def build(node: Node) -> dict[str, Entry]:
    """Path below the emulated root -> what is there. Folders are implied."""
    entries: dict[str, Entry] = {}
    for number, (rdma, port) in enumerate(node.ports.items()):
        rail = port.rail
        entries |= _pci(rail)
        entries |= _rdma(node, rail, port)
        entries[f"{rail.pci_path}/net/{rail.netdev}"] = Real(
            str(port.net), {"device": f"../../../{rail.pci}", "subsystem": "../../../../../class/net"})
        # Not a character device as on a real host: reading it gives what a query through it would.
        entries[f"dev/uverbs{number}"] = File(lambda r=rdma: json.dumps(node.verbs(r)).encode() + b"\n",  # type: ignore[misc]
                                              0o666)
    return entries
