# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated tree of one host: PCI functions with their netdev and RDMA device, class/net, /dev/infiniband."""
from __future__ import annotations

import errno
import json
import os
import posixpath
import stat
from collections.abc import Callable, Iterable

from lab.hardware import gids, pci
from lab.hardware.model import Node as Model
from lab.hardware.nodes import Attr, Dir, IndexDir, Link, Node, RealDir, RealFile, fail, translate_link
from lab.hardware.spec import RailSpec

UVERBS_MAJOR, UVERBS_MINOR = 231, 192
PORT_CAP_MASK = "0x04010000"  # sample ibv_devinfo-2
COUNTERS = (
    "VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors "
    "multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_errors "
    "port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors "
    "port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets "
    "unicast_xmit_packets"
)
# mlx5-roce 1.4
HW_COUNTERS = (
    "rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect out_of_buffer out_of_sequence "
    "duplicate_request rnr_nak_retry_err packet_seq_err implied_nak_seq_err local_ack_timeout_err "
    "resp_local_length_error resp_cqe_error req_cqe_error req_remote_invalid_request req_remote_access_errors "
    "resp_remote_access_errors resp_cqe_flush_error req_cqe_flush_error req_transport_retries_exceeded "
    "req_rnr_retries_exceeded rp_cnp_ignored rp_cnp_handled np_ecn_marked_roce_packets np_cnp_sent roce_adp_retrans "
    "roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rx_icrc_encapsulated"
)
LIFESPAN_MAX_MS = 10000
NODE_DESC_MAX = 64


class Value:
    """A writable attribute's state; lost when the daemon ends, as the device's is at reboot."""

    def __init__(self, text: str, check: Callable[[str], str]) -> None:
        self.text = text
        self.check = check

    def attr(self) -> Attr:
        return Attr(lambda: self.text, self.store)

    def store(self, text: str) -> None:
        self.text = self.check(text)


def lifespan(text: str) -> str:
    """0..10000 ms, anything else EINVAL (mlx5-roce 1.1)."""
    if not text.isascii() or not text.isdigit() or int(text) > LIFESPAN_MAX_MS:
        raise fail(errno.EINVAL)
    return str(int(text))


def gid_attribute(model: Model, rail: RailSpec, index: int, show: Callable[[gids.Entry], str]) -> Attr:
    """types/N or ndevs/N: EINVAL on read while the slot is empty (mlx5-roce 1.1, simulation "ABI facts")."""
    def text() -> str:
        entry = model.tables[rail.rail].slots[index]
        if entry is None:
            raise fail(errno.EINVAL)
        return show(entry)

    return Attr(text)


def gid_text(model: Model, rail: RailSpec, index: int) -> str:
    entry = model.tables[rail.rail].slots[index]
    return gids.groups(entry.gid if entry else gids.EMPTY)


def port_dir(model: Model, rail: RailSpec) -> Dir:
    """ports/1 (mlx5-roce 1.1)."""
    hw_counters: dict[str, Node] = {name: Attr("0") for name in HW_COUNTERS.split()}
    hw_counters["lifespan"] = Value("10", lifespan).attr()
    return Dir({
        "state": Attr(lambda: model.port(rail).state),
        "phys_state": Attr(lambda: model.port(rail).phys_state),
        "rate": Attr(lambda: model.port(rail).rate_text),
        "link_layer": Attr("Ethernet"),
        "lid": Attr("0x0"), "sm_lid": Attr("0x0"), "sm_sl": Attr("0"), "lid_mask_count": Attr("0"),
        "cap_mask": Attr(PORT_CAP_MASK), "has_smi": Attr("0"),
        "gids": IndexDir(gids.LENGTH, lambda n: Attr(lambda: gid_text(model, rail, n))),
        "gid_attrs": Dir({
            "types": IndexDir(gids.LENGTH, lambda n: gid_attribute(model, rail, n, lambda entry: entry.type)),
            "ndevs": IndexDir(gids.LENGTH, lambda n: gid_attribute(
                model, rail, n, lambda entry: model.ndev_name(entry.ndev))),
        }),
        "pkeys": IndexDir(1, lambda n: Attr("0xffff")),
        "counters": Dir({name: Attr("0") for name in COUNTERS.split()}),
        "hw_counters": Dir(hw_counters),
    })


def rdma_dir(model: Model, rail: RailSpec) -> Dir:
    """infiniband/mlx5_N."""
    where = f"{rail.pci_dir}/infiniband/{rail.rdma}"
    return Dir({
        "fw_ver": Attr(rail.fw_ver), "board_id": Attr(rail.board_id), "hca_type": Attr(rail.hca_type),
        "hw_rev": Attr(f"{int(rail.revision, 16):x}"), "node_type": Attr("1: CA"),
        "node_guid": Attr(rail.node_guid), "sys_image_guid": Attr(rail.node_guid),
        "node_desc": Value(rail.node_desc, lambda text: text[:NODE_DESC_MAX]).attr(),
        "device": Link(f"../../../{rail.pci}"),
        "subsystem": Link(posixpath.relpath("class/infiniband", where)),
        "uevent": pci.uevent(f"NAME={rail.rdma}"),
        "ports": Dir({"1": port_dir(model, rail)}),
    })


def verbs_dir(rail: RailSpec) -> Dir:
    """infiniband_verbs/uverbsN."""
    where = f"{rail.pci_dir}/infiniband_verbs/{rail.uverbs}"
    minor = UVERBS_MINOR + rail.rail
    return Dir({
        "ibdev": Attr(rail.rdma), "abi_version": Attr("1"), "dev": Attr(f"{UVERBS_MAJOR}:{minor}"),
        "device": Link(f"../../../{rail.pci}"),
        "subsystem": Link(posixpath.relpath("class/infiniband_verbs", where)),
        "uevent": pci.uevent(f"MAJOR={UVERBS_MAJOR}\nMINOR={minor}\nDEVNAME=infiniband/{rail.uverbs}"),
    })


class Netdevs:
    """Where real netdevs are and where the host is to see them (simulation.md 0b.3)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.root = os.path.join(model.sysfs, "class/net")

    def real(self, name: str) -> str:
        """Real directory of a netdev, relative to /sys."""
        return posixpath.normpath(posixpath.join("class/net", os.readlink(os.path.join(self.root, name))))

    def moved(self) -> dict[str, str]:
        """Real -> emulated directory of every rail's netdev."""
        rails = ((rail, self.model.netdev(rail.rail)) for rail in self.model.spec.rails)
        return {self.real(name): f"{rail.pci_dir}/net/{name}" for rail, name in rails if name}

    def translate(self, path: str, target: str) -> str:
        return translate_link(posixpath.relpath(path, self.model.sysfs), target, self.moved())


class ClassNet(Dir):
    """class/net: rails lead to their PCI function, all else is as the kernel has it."""

    def __init__(self, netdevs: Netdevs) -> None:
        super().__init__()
        self.netdevs = netdevs

    def names(self) -> Iterable[str]:
        return os.listdir(self.netdevs.root)

    def child(self, name: str) -> Node:
        path = os.path.join(self.netdevs.root, name)
        mode = os.lstat(path).st_mode
        if not stat.S_ISLNK(mode):
            return RealFile(path, mode)  # bonding_masters
        rail = self.netdevs.model.rail_of_name(name)
        if rail is None:
            return Link(os.readlink(path))
        return Link(f"../../{self.netdevs.model.spec.rails[rail].pci_dir}/net/{name}")


class RailNet(Dir):
    """BDF/net: the rail's own netdev under its present name, passed through from the real sysfs."""

    def __init__(self, netdevs: Netdevs, rail: RailSpec) -> None:
        super().__init__()
        self.netdevs = netdevs
        self.rail = rail
        # As the kernel writes it: scripts take the basename for the PCI address.
        self.extra = {"device": Link(f"../../../{rail.pci}")}

    def names(self) -> Iterable[str]:
        name = self.netdevs.model.netdev(self.rail.rail)
        return [name] if name else []

    def child(self, name: str) -> Node:
        if not name or name != self.netdevs.model.netdev(self.rail.rail):
            raise fail(errno.ENOENT)
        path = os.path.join(self.netdevs.model.sysfs, self.netdevs.real(name))
        return RealDir(path, self.netdevs.translate, self.extra)


def rail_dir(model: Model, netdevs: Netdevs, rail: RailSpec, privileged: Callable[[], bool]) -> Dir:
    return Dir({
        **pci.function(rail, privileged),
        "net": RailNet(netdevs, rail),
        "infiniband": Dir({rail.rdma: rdma_dir(model, rail)}),
        "infiniband_verbs": Dir({rail.uverbs: verbs_dir(rail)}),
    })


def build(model: Model, privileged: Callable[[], bool]) -> Dir:
    """Root of the file system; layout.binds says where its parts go."""
    netdevs = Netdevs(model)
    devices: dict[str, Node] = {}
    verbs: dict[str, Node] = {}
    for rail in model.spec.rails:
        root = devices.setdefault(rail.root, Dir())
        assert isinstance(root, Dir)
        port = pci.bridge(rail, privileged)
        port.children[rail.pci] = rail_dir(model, netdevs, rail, privileged)
        root.children[rail.bridge] = port
        # 0666 as rdma-core's udev rule gives it; a read is the answer of a verbs query at this moment.
        verbs[rail.uverbs] = Attr(lambda rail=rail: json.dumps(model.query(rail)), permissions=0o666)  # type: ignore[misc]
    return Dir({"net": ClassNet(netdevs), "devices": Dir(devices), "dev": Dir(verbs)})
