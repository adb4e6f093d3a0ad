# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""A node as Slurm is told of it, from what its class says it must be and what the fleet record says it is. Pure.

What the class (variable ``slurm_node``) says, wins: a host that has less than it should is drained by Slurm, and the
configuration does not follow the defect. The record is used where the class does not say, and compared where it does.
"""
from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import hostlist
from .model import ARCHITECTURES, Finding, Node, Severity

Values = t.Mapping[str, t.Any]
CLASS_VARIABLE = "slurm_node"
KEYS = ("sockets", "cores_per_socket", "threads_per_core", "memory_mib", "gpus", "gres_type", "gpu_files", "cores")
# Variables of a host that are looked at.
VARIABLES = (CLASS_VARIABLE, "slurm_node_address", "nvlink_domain", "node_class_name", "node_class_architecture",
             "node_class_gpu_count", "node_class_nvlink_domain_trays")
# Kernels differ by a few MiB in what they leave (3.3), so RealMemory is a whole number of GiB below what was measured.
_GRAIN_MIB = 1024
FACTS = "facts for NodeName"
_HINT = "run playbooks/discover.yml, or set it in slurm_node of the class or the host"


@dataclass
class Findings:
    """Equal ones of many hosts are one."""

    hosts: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def add(self, severity: Severity, host: str, what: str, got: t.Any, wanted: t.Any, hint: str = "") -> None:
        self.hosts.setdefault((severity, what, str(got), str(wanted), hint), []).append(host)

    def all(self) -> list[Finding]:
        return [Finding(t.cast("Severity", severity), f"{hostlist.compress(hosts)}: {what}", got, wanted, hint,
                        is_unknown=what == FACTS)
                for (severity, what, got, wanted, hint), hosts in self.hosts.items()]


def _whole(value: t.Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def measured(record: Values) -> dict[str, t.Any]:
    """Of a record of host_info the facts by our names; 0 for what it does not have."""
    cpu = record.get("cpu") or {}
    sockets, cores, threads = (_whole(cpu.get(name)) for name in ("sockets", "cores", "threads"))
    even = bool(sockets and cores and threads) and cores % sockets == 0 and threads % cores == 0
    gpus = record.get("gpus")
    return {
        "sockets": sockets if even else 0,
        "cores_per_socket": cores // sockets if even else 0,
        "threads_per_core": threads // cores if even else 0,
        "memory_mib": _whole((record.get("memory") or {}).get("total_mib")),
        "gpus": len(gpus) if isinstance(gpus, list) else 0,
        "architecture": record.get("architecture") or "",
        "gpu_nodes": [gpu.get("numa_node") for gpu in gpus] if isinstance(gpus, list) else [],
        "numa_nodes": _whole(cpu.get("numa_nodes")),
    }


def wanted(values: Values) -> dict[str, t.Any]:
    """The same as the inventory has them."""
    given = values.get(CLASS_VARIABLE)
    given = given if isinstance(given, t.Mapping) else {}
    found = {name: _whole(given.get(name)) for name in KEYS[:5]}
    if "gpus" not in given:
        found["gpus"] = _whole(values.get("node_class_gpu_count"))
    return {**found, "architecture": str(values.get("node_class_architecture") or ""),
            "gres_type": str(given.get("gres_type") or values.get("node_class_name") or "nvidia"),
            "gpu_files": given.get("gpu_files") or "", "cores": given.get("cores") or []}


def _shape(host: str, values: Values, have: Values | None, found: Findings) -> dict[str, t.Any]:
    """Numbers and architecture, each from the class or from the record; 0 or '' where neither has it."""
    want = wanted(values)
    is_class_silent_on_gpus = "node_class_gpu_count" not in values and not want["gpus"]
    for name in ("sockets", "cores_per_socket", "threads_per_core", "memory_mib", "gpus", "architecture"):
        here = have[name] if have else 0
        if name == "gpus" and not is_class_silent_on_gpus:
            if have and here != want[name]:
                found.add("warning", host, "GPUs in the fleet record", here, want[name],
                          "Slurm will drain it (INVALID_REG); repair it, the configuration keeps the wanted count")
            continue
        if not want[name]:
            want[name] = here
        elif here and name == "memory_mib" and here < want[name]:
            found.add("warning", host, "MiB of memory in the fleet record", here, f"{want[name]} or more",
                      "with less than RealMemory Slurm drains it (Low RealMemory)")
        elif here and name != "memory_mib" and here != want[name]:
            found.add("warning", host, f"{name} in the fleet record", here, want[name],
                      "firmware (NPS, SMT) or hardware differs from slurm_node of its class")
    return want


def _files(host: str, want: Values, found: Findings) -> tuple[str, ...]:
    count = want["gpus"]
    if not count:
        return ()
    text = want["gpu_files"] or (f"/dev/nvidia[0-{count - 1}]" if count > 1 else "/dev/nvidia0")
    try:
        return tuple(hostlist.expand(str(text), hostlist.FILE))
    except hostlist.HostlistError as error:
        found.add("error", host, "slurm_node.gpu_files", text, "device files such as /dev/nvidia[0-3]", str(error))
        return ()


def _cores(want: Values, have: Values | None) -> tuple[str, ...]:
    """Cores near each GPU; from the record only where sockets and NUMA nodes are the same thing."""
    given = want["cores"]
    if given:
        return tuple(str(one) for one in given) if isinstance(given, (list, tuple)) else (str(given),) * want["gpus"]
    if not have or have["gpus"] != want["gpus"] or not want["gpus"] or have["numa_nodes"] != want["sockets"]:
        return ()
    size, nodes = want["cores_per_socket"], have["gpu_nodes"]
    if not all(isinstance(node, int) and 0 <= node < want["sockets"] for node in nodes):
        return ()
    return tuple(f"{node * size}-{node * size + size - 1}" for node in nodes)


def _memory(total: int, reserve: int) -> int:
    left = total - reserve
    return left // _GRAIN_MIB * _GRAIN_MIB if left >= _GRAIN_MIB else left


def node(host: str, values: Values, record: Values | None, reserve_mib: int, leaf: str, found: Findings) -> Node | None:
    """None where something that Slurm must be told is not known."""
    have = measured(record) if record is not None else None
    want = _shape(host, values, have, found)
    missing = [name for name in KEYS[:4] if not want[name]]
    if missing:
        found.add("error", host, FACTS, f"no {', '.join(missing)}", "them in the class or the record",
                  _HINT)
    if want["architecture"] not in ARCHITECTURES:
        found.add("error", host, "architecture", want["architecture"] or "none", " or ".join(ARCHITECTURES),
                  "node_class_architecture")
    files = _files(host, want, found)
    memory = _memory(want["memory_mib"], reserve_mib)
    if not missing and memory <= 0:
        found.add("error", host, "RealMemory", f"{want['memory_mib']} MiB less the reserve of {reserve_mib}",
                  "something left", "slurm_memory_reserve_mib")
    if missing or memory <= 0:
        return None
    return Node(
        host, str(values.get("node_class_name") or ""), want["architecture"], want["sockets"],
        want["cores_per_socket"], want["threads_per_core"], memory, want["gpus"],
        want["gres_type"] if want["gpus"] else "", files, _cores(want, have), str(values.get("nvlink_domain") or ""),
        leaf, str(values.get("slurm_node_address") or ""), _whole(values.get("node_class_nvlink_domain_trays")))
