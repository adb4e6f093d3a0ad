# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated tree of one host: PCI functions with their netdev and RDMA device, class/net, /dev/infiniband."""
from __future__ import annotations

import errno
import functools
import json
import os
import posixpath
import stat
from collections.abc import Callable, Iterable

from lab.hardware import ethtool, gids, gpus, kernel, parameters, pci, qos
from lab.hardware.model import Node as Model
from lab.hardware.nodes import Attr, ChangingDir, Dir, IndexDir, Link, Node, RealDir, RealFile, fail, translate_link
from lab.hardware.spec import GpuSpec, RailSpec

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
DRIVER = "bus/pci/drivers/mlx5_core"
LIFESPAN_MAX_MS = 10000
NODE_DESC_MAX = 64


def value(model: Model, rail: RailSpec, name: str, default: str, check: Callable[[str], str]) -> Attr:
    """A writable attribute that is in the driver's memory: lost when the driver goes (state.py)."""
    key = (rail.rail, name)

    def store(text: str) -> None:
        model.state.runtime[key] = check(text)

    return Attr(lambda: model.state.runtime.get(key, default), store)


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
    hw_counters["lifespan"] = value(model, rail, "lifespan", "10", lifespan)
    return Dir({
        "state": Attr(lambda: model.port(rail).state),
        "phys_state": Attr(lambda: model.port(rail).phys_state),
        "rate": Attr(lambda: model.port(rail).rate_text),
        "link_layer": Attr(lambda: model.state.link_layer(rail.rail)),
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
    extras = qos.rdma_extras(model, rail)
    return ChangingDir({
        **extras,
        "fw_ver": Attr(rail.fw_ver), "board_id": Attr(rail.board_id), "hca_type": Attr(rail.hca_type),
        "hw_rev": Attr(f"{int(rail.revision, 16):x}"), "node_type": Attr("1: CA"),
        "node_guid": Attr(rail.node_guid), "sys_image_guid": Attr(rail.node_guid),
        "node_desc": value(model, rail, "node_desc", rail.node_desc, lambda text: text[:NODE_DESC_MAX]),
        "device": Link(f"../../../{rail.pci}"),
        "subsystem": Link(posixpath.relpath("class/infiniband", where)),
        "uevent": pci.uevent(f"NAME={rail.rdma}"),
        "ports": Dir({"1": port_dir(model, rail)}),
    }, dict.fromkeys(extras, model.state.ofed))


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
        self.extra: dict[str, Node] = {"device": Link(f"../../../{rail.pci}")}
        self.ofed = qos.netdev_extras(netdevs.model, rail)

    def names(self) -> Iterable[str]:
        name = self.netdevs.model.netdev(self.rail.rail)
        return [name] if name else []

    def child(self, name: str) -> Node:
        if not name or name != self.netdevs.model.netdev(self.rail.rail):
            raise fail(errno.ENOENT)
        path = os.path.join(self.netdevs.model.sysfs, self.netdevs.real(name))
        more = self.ofed if self.netdevs.model.state.ofed() else {}
        return RealDir(path, self.netdevs.translate, {**self.extra, **more})


class VirtualNet(Dir):
    """devices/virtual/net, where the kernel's uevents have a rail's netdev, as it is a veth.

    udev's ``DRIVERS==`` goes from the device of the event upwards; a real port's parent, the PCI function, has the link
    ``driver``. Here nothing is above, so the netdev itself has it, as long as the driver has the function.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.root = os.path.join(model.sysfs, "devices/virtual/net")

    def names(self) -> Iterable[str]:
        return os.listdir(self.root)

    def child(self, name: str) -> Node:
        path = os.path.join(self.root, name)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise fail(errno.ENOENT)
        rail = self.model.rail_of_name(name)
        where = f"devices/virtual/net/{name}"
        driver = {"driver": Link(posixpath.relpath(DRIVER, where))} if rail is not None and self.model.state.bound(
            rail) else {}
        return RealDir(path, lambda _path, target: target, driver)


def sriov(model: Model, rail: RailSpec) -> dict[str, Node]:
    """sriov_totalvfs, sriov_numvfs and the links to the functions [Linux drivers/pci/iov.c, sriov_numvfs_store]."""
    state, number = model.state, rail.rail

    def store(text: str) -> None:
        wanted = int(text) if text.isascii() and text.isdigit() else -1
        have = state.vfs.get(number, 0)
        if wanted < 0:
            raise fail(errno.EINVAL)
        if wanted > state.most_vfs(number):
            raise fail(errno.ERANGE)
        if wanted and have and wanted != have:
            raise fail(errno.EBUSY)
        state.set_vfs(number, wanted)

    return {
        "sriov_totalvfs": Attr(lambda: str(state.most_vfs(number))),
        "sriov_numvfs": Attr(lambda: str(state.vfs.get(number, 0)), store),
        **{f"virtfn{vf}": Link(f"../{pci.virtual_address(rail, vf + 1)}") for vf in range(state.vfs.get(number, 0))},
    }


def virtual_functions(model: Model, rail: RailSpec) -> list[int]:
    return list(range(1, model.state.vfs.get(rail.rail, 0) + 1))


def rail_dir(model: Model, netdevs: Netdevs, rail: RailSpec, privileged: Callable[[], bool]) -> Dir:
    """The PCI function; netdev, RDMA device and driver link come and go with the driver."""
    state, number = model.state, rail.rail
    return ChangingDir({
        **pci.function(rail, state.config[number], privileged),
        **sriov(model, rail),
        parameters.FILE: parameters.door(state.card(number), state.save, privileged),
        "driver": Link(posixpath.relpath(DRIVER, rail.pci_dir)),
        "net": RailNet(netdevs, rail),
        "infiniband": Dir({rail.rdma: rdma_dir(model, rail)}),
        "infiniband_verbs": Dir({rail.uverbs: verbs_dir(rail)}),
    }, {
        **{name: lambda: state.bound(number) for name in ("driver", "net")},
        **{name: lambda: state.rdma(number) for name in ("infiniband", "infiniband_verbs")},
    })


class GpuDir(Dir):
    """A GPU's PCI function, with a link to the driver that has it."""

    def __init__(self, model: Model, gpu: GpuSpec, privileged: Callable[[], bool]) -> None:
        self.gpus, self.gpu = model.state.gpus, gpu
        super().__init__(pci.gpu(gpu, privileged, functools.partial(self.gpus.answers, gpu.gpu)))

    def _driver(self) -> str | None:
        return self.gpus.driver() if self.gpu.gpu in self.gpus.driven else None

    def names(self) -> Iterable[str]:
        return [*self.children, *(["driver"] if self._driver() else [])]

    def child(self, name: str) -> Node:
        driver = self._driver() if name == "driver" else None
        return Link(posixpath.relpath(f"bus/pci/drivers/{driver}", self.gpu.pci_dir)) if driver else super().child(name)


def link_dir(where: str, links: dict[str, tuple[str, Callable[[], bool]]], more: dict[str, Node] | None = None) -> Dir:
    """A directory of links as classes and buses have: name -> (target below /sys, whether it is there)."""
    children = {name: Link(posixpath.relpath(target, where)) for name, (target, _present) in links.items()}
    return ChangingDir({**children, **(more or {})}, {name: present for name, (_target, present) in links.items()})


def bus_and_classes(model: Model) -> tuple[Dir, Dir]:
    """bus/pci and class/infiniband*: plain links, but they must vanish with their device."""
    devices: dict[str, tuple[str, Callable[[], bool]]] = {}
    drivers: dict[str, tuple[str, Callable[[], bool]]] = {}
    rdma: dict[str, tuple[str, Callable[[], bool]]] = {}
    verbs: dict[str, tuple[str, Callable[[], bool]]] = {}
    for rail in model.spec.rails:
        on_bus, bound, has_rdma = (functools.partial(question, rail.rail) for question in (
            model.state.on_bus, model.state.bound, model.state.rdma))
        devices[rail.bridge] = (posixpath.dirname(rail.pci_dir), lambda: True)
        devices[rail.pci] = (rail.pci_dir, on_bus)
        for vf in virtual_functions(model, rail):
            address = pci.virtual_address(rail, vf)
            devices[address] = (posixpath.join(posixpath.dirname(rail.pci_dir), address), on_bus)
        drivers[rail.pci] = (rail.pci_dir, bound)
        rdma[rail.rdma] = (f"{rail.pci_dir}/infiniband/{rail.rdma}", has_rdma)
        verbs[rail.uverbs] = (f"{rail.pci_dir}/infiniband_verbs/{rail.uverbs}", has_rdma)
    for gpu in model.spec.gpus:
        devices[gpu.bridge] = (posixpath.dirname(gpu.pci_dir), lambda: True)
        devices[gpu.pci] = (gpu.pci_dir, functools.partial(model.state.gpus.on_bus, gpu.gpu))
    gpus_of = model.state.gpus
    by_driver = {posixpath.basename(DRIVER): link_dir(DRIVER, drivers)}
    for name in ("nvidia", "nouveau"):
        by_driver[name] = link_dir(f"bus/pci/drivers/{name}", {gpu.pci: (gpu.pci_dir, functools.partial(
            lambda name, number: gpus_of.driver() == name and number in gpus_of.driven, name, gpu.gpu))
            for gpu in model.spec.gpus})
    bus = Dir({"devices": link_dir("bus/pci/devices", devices), "drivers": ChangingDir(by_driver, {
        name: functools.partial(gpus_of.loaded.__contains__, name) for name in ("nvidia", "nouveau")})})
    classes = Dir({
        "infiniband": link_dir("class/infiniband", rdma),
        # libibverbs reads the ABI version.
        "infiniband_verbs": link_dir("class/infiniband_verbs", verbs, {"abi_version": Attr("6")}),
    })
    return bus, classes


def build(model: Model, privileged: Callable[[], bool]) -> Dir:
    """Root of the file system; layout.binds says where its parts go."""
    netdevs = Netdevs(model)
    devices: dict[str, Node] = {}
    verbs: dict[str, Node] = {}
    has_verbs: dict[str, Callable[[], bool]] = {}
    for rail in model.spec.rails:
        root = devices.setdefault(rail.root, Dir())
        assert isinstance(root, Dir)
        port = pci.bridge(rail, privileged)
        root.children[rail.bridge] = ChangingDir(
            {**port, rail.pci: rail_dir(model, netdevs, rail, privileged),
             **{pci.virtual_address(rail, vf): Dir(pci.virtual(rail, vf, privileged))
                for vf in virtual_functions(model, rail)}},
            {rail.pci: functools.partial(model.state.on_bus, rail.rail)})
        # 0666 as rdma-core's udev rule gives it; a read is the answer of a verbs query at this moment.
        verbs[rail.uverbs] = Attr(lambda rail=rail: json.dumps(model.query(rail)), permissions=0o666)  # type: ignore[misc]
        has_verbs[rail.uverbs] = functools.partial(model.state.rdma, rail.rail)
    for gpu in model.spec.gpus:
        root = devices.setdefault(gpu.root, Dir())
        assert isinstance(root, Dir)
        root.children[gpu.bridge] = ChangingDir(
            {**pci.bridge(gpu, privileged), gpu.pci: GpuDir(model, gpu, privileged)},
            {gpu.pci: functools.partial(model.state.gpus.on_bus, gpu.gpu)})
    verbs["ethtool"], has_verbs["ethtool"] = ethtool.attribute(model), lambda: model.state.driver
    bus, classes = bus_and_classes(model)
    return Dir({"net": ClassNet(netdevs), "virtual_net": VirtualNet(model), "devices": Dir(devices),
                "dev": ChangingDir(verbs, has_verbs), "pci": bus,
                "module": kernel.Modules(model), "modules": Attr(lambda: kernel.proc_modules(model.state)),
                "lab": Dir({"driver": kernel.door(model, privileged),
                            "modules": gpus.door(model.state.gpus, privileged)}),
                "proc_driver": gpus.ProcDriver(model.state.gpus, os.uname().machine),
                "dcbnl": qos.DcbnlDir(model), "configfs": qos.Configfs(model),
                "debugfs": Dir({"mlx5": qos.Debugfs(model)}), **classes.children})
