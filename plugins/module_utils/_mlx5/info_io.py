# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""One call of mlx5_info: the node as mlx5_port sees it, and what only a reader wants to know."""
from __future__ import annotations

import typing as t

from .._host.files import read_text
from .._host.machine import Machine
from .._host.sysfs import Sysfs
from . import info, io, qos_io, stack
from .counters import COUNTERS
from .model import Device, Node

_PCI = "bus/pci/devices"
_PRIORITIES = range(8)
_CC_PARAMS = {"cnp_dscp": "np_cnp_dscp", "cnp_priority": "np_cnp_prio",
              "min_time_between_cnps": "np_min_time_between_cnps"}
_ECN_NP = {"cnp_dscp": "cnp_dscp", "cnp_priority": "cnp_802p_prio", "min_time_between_cnps": "min_time_between_cnps"}
QOS_WHY = "not read by mlx5_port, as roce_qos sets it after it; mlx5_info reads it"


def _pcie(sysfs: Sysfs, pci: str) -> dict[str, t.Any]:
    base = f"{_PCI}/{pci}"
    return {f"{which}_{name}": parse(sysfs.read(f"{base}/{which}_link_{file}").value)
            for which in ("current", "max")
            for name, file, parse in (("speed_gts", "speed", info.speed_gts), ("width", "width", info.width))}


def _functions(sysfs: Sysfs, pci: str) -> dict[str, t.Any]:
    """The physical function of a VF, the VFs of a physical function."""
    base = f"{_PCI}/{pci}"
    names = sysfs.names(base)
    vfs = [sysfs.link_name(f"{base}/{name}") for name in names if name.startswith("virtfn")]
    return {"pf": sysfs.link_name(f"{base}/physfn") if "physfn" in names else None, "vfs": [vf for vf in vfs if vf]}


def _netdevs(sysfs: Sysfs, device: Device) -> list[dict[str, t.Any]]:
    found = []
    for name in device.netdevs:
        label = sysfs.read(f"class/net/{name}/phys_port_name").or_none()
        found.append({"name": name, "phys_port_name": label,
                      "kind": info.netdev_kind(label or "", len(device.netdevs) == 1)})
    return found


def _counters(sysfs: Sysfs, rdma: str | None, port: int) -> dict[str, int]:
    values = {name: sysfs.number(f"class/infiniband/{rdma}/ports/{port}/{folder}/{name}")
              for folder, name, _meaning in COUNTERS} if rdma else {}
    return {name: value for name, value in values.items() if value is not None}


def _switch(sysfs: Sysfs, path: str) -> bool | None:
    """Nothing at all in the file means that the firmware was not heard, not that the switch is off."""
    value = sysfs.read(path).value
    return value == "1" if value in ("0", "1") else None


def _ecn(sysfs: Sysfs, pci: str, netdev: str | None) -> dict[str, t.Any]:
    """OFED's ecn/ beside the netdev, else the kernel's cc_params in debugfs, which has no switch per priority."""
    ofed, inbox = f"class/net/{netdev}/ecn", f"kernel/debug/mlx5/{pci}/cc_params"
    none = {"source": None, "np_enabled": None, "rp_enabled": None, **{name: None for name in _ECN_NP}, "why": None}
    if netdev and sysfs.names(ofed):
        return {**none, "source": "ecn",
                "np_enabled": [_switch(sysfs, f"{ofed}/roce_np/enable/{prio}") for prio in _PRIORITIES],
                "rp_enabled": [_switch(sysfs, f"{ofed}/roce_rp/enable/{prio}") for prio in _PRIORITIES],
                **{name: sysfs.number(f"{ofed}/roce_np/{file}") for name, file in _ECN_NP.items()}}
    if sysfs.names(inbox):
        return {**none, "source": "cc_params",
                **{name: sysfs.number(f"{inbox}/{file}") for name, file in _CC_PARAMS.items()},
                "why": "no switch per priority in the inbox driver; the firmware's ROCE_CC_PRIO_MASK decides"}
    return {**none, "why": f"neither /sys/{ofed} nor /sys/{inbox} (debugfs needs root)"}


def loaded_stack(machine: Machine, bound: bool) -> stack.Stack:
    """``bound``: mlx5_core has a device."""
    sysfs = Sysfs(machine.path("/sys"))
    lines = (read_text(machine.path("/proc/modules")) or "").splitlines()
    modules = [line.split()[0] for line in lines if line.split()]
    # A kernel may have no /proc/modules; a folder with initstate is of a module that was loaded from a file.
    modules += [name for name in stack.OFED_MODULES if sysfs.read(f"module/{name}/initstate").state == "ok"]
    asked, package = machine.tool("modinfo", "mlx5_core"), machine.tool("ofed_info", "-s")
    return stack.judge(
        modules, sysfs.read("module/mlx5_core/version").or_none(), sysfs.read("module/mlx5_core/srcversion").or_none(),
        bound, stack.modinfo(asked.stdout) if asked.state == "ok" else {},
        stack.ofed_package(package.stdout) if package.state == "ok" else None)


def read_stack(machine: Machine, node: Node) -> stack.Stack:
    return loaded_stack(machine, any(device.driver == "mlx5_core" for device in node.devices))


def _complete(
    sysfs: Sysfs, device: Device, data: dict[str, t.Any], links: dict[str, dict[str, t.Any]], qos: qos_io.Answer,
) -> None:
    data.update(pcie=links[device.pci], netdev_details=_netdevs(sysfs, device), **_functions(sysfs, device.pci))
    for port in data["ports"]:
        port.update(role=info.role(data["rail"], port["excluded"]), qos=qos[0], qos_why=qos[1],
                    counters=_counters(sysfs, device.rdma_device, port["port"]),
                    ecn=_ecn(sysfs, device.pci, port["netdev"]))


def read(machine: Machine, rails: t.Sequence[str], wanted: info.NodeClass) -> dict[str, t.Any]:
    """What mlx5_info returns."""
    node = io.gather(machine)
    return complete(machine, node, rails, wanted, qos_io.read(machine, node.devices))


def complete(
    machine: Machine, node: Node, rails: t.Sequence[str], wanted: info.NodeClass,
    qos: t.Mapping[str, qos_io.Answer] | None = None,
) -> dict[str, t.Any]:
    """The same from a node that has just been read."""
    data = node.as_data(rails)
    sysfs = Sysfs(machine.path("/sys"))
    links = {device.pci: _pcie(sysfs, device.pci) for device in node.devices}
    for device, entry in zip(node.devices, data["devices"]):
        _complete(sysfs, device, entry, links, (qos or {}).get(device.pci, (None, QOS_WHY)))
    loaded = read_stack(machine, node)
    findings = [*info.pcie_findings(node.devices, links, rails, wanted), *loaded.findings]
    needs_root = [f"/sys/{path}" for path, error in sysfs.errors.items() if error in ("EACCES", "EPERM")]
    if node.networkd.unreadable:
        needs_root.append(node.networkd.unreadable)
    return {**data, "stack": loaded.as_data(), "findings": [problem.as_dict() for problem in findings],
            "needs_root": sorted(needs_root)}
