# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of inventories/prod as slurm_render sees it: 18 + 18 gb200, 16 l40s, 32 epyc9754."""
from __future__ import annotations

import typing as t

from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm import render_argspec, render_cluster
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.model import Host
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._slurm.render_cluster import Inventory, Rendered

GB200 = {
    "node_class_name": "gb200", "node_class_architecture": "aarch64", "node_class_gpu_count": 4,
    "node_class_nvlink_domain_trays": 18,
    "slurm_node": {"sockets": 2, "cores_per_socket": 72, "threads_per_core": 1, "memory_mib": 981000,
                   "cores": ["0-71", "0-71", "72-143", "72-143"]},
}
L40S = {"node_class_name": "l40s", "node_class_architecture": "x86_64", "node_class_gpu_count": 4}
EPYC = {
    "node_class_name": "epyc9754", "node_class_architecture": "x86_64", "node_class_gpu_count": 0,
    "slurm_node": {"sockets": 1, "cores_per_socket": 128, "threads_per_core": 2},
}


def record(architecture: str, sockets: int, cores: int, threads: int, memory_mib: int,
           gpu_nodes: t.Sequence[int] = ()) -> dict[str, t.Any]:
    """Of host_info, as far as it is read."""
    return {"architecture": architecture, "memory": {"total_mib": memory_mib},
            "cpu": {"model": "x", "sockets": sockets, "cores": cores, "threads": threads, "numa_nodes": sockets},
            "gpus": [{"pci": f"0000:{number:02x}:00.0", "pci_id": "10de:26b9", "numa_node": node}
                     for number, node in enumerate(gpu_nodes, 1)]}


def names(count: int, form: str) -> list[str]:
    return [form.format(number) for number in range(1, count + 1)]


def prod(domains: int = 2, trays: int = 18, l40s: int = 16, epyc: int = 32, digits: int = 2) -> Inventory:
    hosts: dict[str, t.Any] = {}
    groups: dict[str, list[str]] = {"gb200": []}
    for domain in range(1, domains + 1):
        members = names(trays, f"gb{domain}-{{:02d}}")
        groups[f"leaf_nvl{domain}"] = members
        groups["gb200"] += members
        hosts.update({name: {**GB200, "nvlink_domain": f"nvl{domain}"} for name in members})
    for group, leaf, count, values in (("l40s", "leaf_l40s", l40s, L40S), ("epyc9754", "leaf_epyc", epyc, EPYC)):
        members = names(count, f"{group[:4]}-{{:0{digits}d}}")
        groups[group] = groups[leaf] = members
        hosts.update({name: dict(values) for name in members})
    records = {name: record("x86_64", 2, 64, 128, 515_000 + number % 3, [0, 0, 1, 1])
               for number, name in enumerate(groups["l40s"])}
    records.update({name: record("x86_64", 1, 128, 256, 772_300) for name in groups["epyc9754"]})
    records.update({name: record("aarch64", 2, 144, 144, 982_400, [0, 0, 1, 1]) for name in groups["gb200"]})
    leaves = {name: group for group, members in groups.items() if group.startswith("leaf") for name in members}
    return Inventory(hosts, groups, (Host("ctl1"), Host("ctl2")), (Host("ctl1"),), leaves, records)


def arguments(**given: t.Any) -> dict[str, t.Any]:
    defaults = {name: option.get("default") for name, option in render_argspec.RENDER.items()}
    return {**defaults, "version": "24.11.5", "cluster_name": "prod", "mem_spec_limit_mib": 8192,
            "health_program": "/usr/libexec/aidc/aidc-health.pyz", "reboot_program": "/usr/sbin/reboot", **given}


def render(inventory: Inventory | None = None, **given: t.Any) -> Rendered:
    return render_cluster.render(arguments(**given), inventory or prod())
