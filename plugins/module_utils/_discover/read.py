# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From the results of host_info and mlx5_info to a host. Takes whatever is there; what is missing is None."""
from __future__ import annotations

import typing as t

from .._host.errors import Problem
from .._host.runner import Result
from .model import Host, Port, pci_order

MISSING = Result((), "missing").why()


def _dict(data: t.Any, key: str) -> dict[str, t.Any]:
    value = data.get(key) if isinstance(data, t.Mapping) else None
    return dict(value) if isinstance(value, t.Mapping) else {}


def _list(data: t.Any, key: str) -> list[dict[str, t.Any]]:
    value = data.get(key) if isinstance(data, t.Mapping) else None
    return [dict(item) for item in value if isinstance(item, t.Mapping)] if isinstance(value, (list, tuple)) else []


def _address(netdev: t.Mapping[str, t.Any]) -> str | None:
    return next((str(text) for text in netdev.get("addresses") or () if ":" not in str(text)), None)


def _port(nic: t.Mapping[str, t.Any], device: t.Mapping[str, t.Any], netdevs: t.Mapping[str, t.Mapping[str, t.Any]],
          neighbours: t.Mapping[str, str]) -> Port:
    port = next(iter(_list(device, "ports")), {})
    name = port.get("netdev")
    netdev, link = netdevs.get(str(name), {}), _dict(device, "pcie")
    return Port(
        str(nic["pci"]), str(nic["pci_id"]), bool(nic.get("is_vf")), name, port.get("state"), port.get("speed_gbps"),
        port.get("link_layer"), port.get("excluded"), link.get("current_speed_gts"), link.get("current_width"),
        _address(netdev), netdev.get("owner"), neighbours.get(str(name)))


def _neighbours(info: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Switch of each port, by its name or else its id. An LLDP agent in a NIC speaks too: the first one counts."""
    found: dict[str, str] = {}
    for entry in _list(info, "lldp"):
        switch = entry.get("chassis") or entry.get("chassis_id")
        if switch:
            found.setdefault(str(entry.get("netdev")), str(switch))
    return found


def _system(info: t.Mapping[str, t.Any]) -> str:
    system, base = _dict(info, "os"), _dict(info, "base_os")
    text = f"{system.get('id') or '?'} {system.get('version') or ''}".strip()
    return f"{text} (BaseOS {base['version']})" if base.get("version") else text


def _stack(info: t.Mapping[str, t.Any]) -> str:
    drivers = _dict(info, "drivers")
    mlx5, nvidia = _dict(drivers, "mlx5"), _dict(drivers, "nvidia")
    parts = []
    if mlx5.get("backend"):
        parts.append(f"{mlx5['backend']} {mlx5.get('version') or ''}".strip())
    if nvidia.get("version"):
        parts.append(f"nvidia {nvidia['version']}")
    return ", ".join(parts) or "none"


def _problems(data: t.Mapping[str, t.Any], key: str) -> list[Problem]:
    """A program that is not installed is no wonder on a bare host."""
    return [Problem(*(str(item.get(name, "")) for name in ("object", "got", "wanted", "hint")))
            for item in _list(data, key) if item.get("got") != MISSING]


def _failure(result: t.Any) -> str | None:
    if not isinstance(result, t.Mapping):
        return "no result"
    if result.get("unreachable"):
        return f"unreachable: {result.get('msg', '')}".strip()
    if result.get("failed") or "os" not in result:
        return str(result.get("msg") or "host_info gave no result")
    return None


def host(name: str, info: t.Any, mlx5: t.Any) -> Host:
    """``info`` and ``mlx5`` are what the tasks registered."""
    error = _failure(info)
    if error is not None:
        return Host(name, error=" ".join(error.split())[:300])
    netdevs = {str(entry.get("name")): entry for entry in _list(info, "netdevs")}
    devices = {str(entry.get("pci")): entry for entry in _list(mlx5, "devices")}
    neighbours, domain = _neighbours(info), _dict(info, "nvlink_domain")
    ports = [_port(nic, devices.get(str(nic.get("pci")), {}), netdevs, neighbours)
             for nic in _list(info, "nics") if nic.get("pci") and nic.get("pci_id")]
    findings = [*_problems(info, "findings"), *_problems(info, "problems"), *_problems(mlx5, "problems")]
    if not isinstance(mlx5, t.Mapping) or "devices" not in mlx5:
        said = mlx5.get("msg") if isinstance(mlx5, t.Mapping) else None
        findings.append(Problem("mlx5_info", str(said or "no result"), "its result", "run the module by hand"))
    return Host(
        name, architecture=info.get("architecture"), cores=_dict(info, "cpu").get("cores"),
        gpus=tuple((str(gpu.get("pci")), str(gpu.get("pci_id")), gpu.get("name")) for gpu in _list(info, "gpus")),
        ports=tuple(sorted(ports, key=lambda port: pci_order(port.pci))),
        nvlink_domain=f"{domain.get('cluster_uuid')}.{domain.get('clique_id')}" if domain else None,
        system=_system(info), product=_dict(info, "dmi").get("product"), stack=_stack(info),
        findings=tuple(dict.fromkeys(findings)),
        needs_root=tuple(dict.fromkeys(str(item) for data in (info, mlx5) if isinstance(data, t.Mapping)
                                       for item in data.get("needs_root") or ())))
