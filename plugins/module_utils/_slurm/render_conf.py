# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""slurm.conf as text, or its parts for a cluster that is not ours. Pure.

Keys in ``owned`` follow from the inventory and are refused in ``slurm_options``; those in ``defaults`` give way to it.
"""
from __future__ import annotations

import typing as t

from . import hostlist
from .model import HEADER, Cluster, Host, Node, Partition
from .render_topology import Plan
from .versions import has

Pairs = dict[str, str]
NODES, PARTITIONS = "aidc-nodes.conf", "aidc-partitions.conf"
# Keys of a PartitionName line that follow from slurm_partitions itself.
PARTITION_OWNED = ("PartitionName", "Nodes", "Default", "MaxTime", "Topology")
# Given once a host or a node, and not in a table of pairs.
REPEATED = ("SlurmctldHost", "NodeName", "PartitionName", "NodeSet", "DownNodes", "FrontendName", "Include")


def _identity(cluster: Cluster) -> Pairs:
    settings = cluster.settings
    return {"ClusterName": cluster.name, "SlurmUser": settings.user, "AuthType": "auth/munge",
            # Compute and login nodes fetch all files from slurmctld.
            "SlurmctldParameters": "enable_configless", "StateSaveLocation": settings.state_dir}


def _scheduling(cluster: Cluster) -> Pairs:
    found = {"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory"}
    if cluster.has_gpus:
        found["GresTypes"] = "gpu"
    return found


def _processes(cluster: Cluster) -> Pairs:
    """By what the hosts offer [simulation 0.2]: without cgroups nothing can be confined."""
    # slurmctld 24.11 complains of figures that are gathered and not stored.
    gather = "none" if cluster.dbd is None or cluster.settings.cgroup == "disabled" else "cgroup"
    found = {"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/affinity,task/cgroup",
             "JobAcctGatherType": f"jobacct_gather/{gather}",
             # Contain is what pam_slurm_adopt needs [3.3].
             "PrologFlags": "Alloc,Contain"}
    if cluster.settings.cgroup == "disabled":
        found.update(ProctrackType="proctrack/linuxproc", TaskPlugin="task/none", PrologFlags="Alloc")
    return found


def _topology(cluster: Cluster, plan: Plan) -> Pairs:
    found = {}
    if plan.kind != "flat" and not has(cluster.version, "topology_yaml"):
        found["TopologyPlugin"] = f"topology/{plan.kind}"
    if cluster.has_domains and has(cluster.version, "nvidia_imex"):
        # Of the whole cluster; it does nothing on a node without IMEX [3.3].
        found["SwitchType"] = "switch/nvidia_imex"
    return found


def _programs(cluster: Cluster) -> Pairs:
    settings = cluster.settings
    found = {"RebootProgram": settings.reboot_program, "Prolog": settings.prolog, "Epilog": settings.epilog}
    if settings.health_program and settings.health_interval_seconds:
        found.update({"HealthCheckProgram": settings.health_program,
                      "HealthCheckInterval": str(settings.health_interval_seconds),
                      "HealthCheckNodeState": "IDLE,CYCLE"})
    return {key: value for key, value in found.items() if value}


def _accounting(cluster: Cluster) -> Pairs:
    if cluster.dbd is None:
        return {}
    found = {"AccountingStorageType": "accounting_storage/slurmdbd",
             "AccountingStorageHost": cluster.dbd.address or cluster.dbd.name}
    return {**found, "AccountingStorageTRES": "gres/gpu"} if cluster.has_gpus else found


DEFAULTS: Pairs = {
    # A node that comes back from being DOWN for no answer is used again; one that was drained is not [3.3].
    "ReturnToService": "1",
    # A GB200 tray boots for a long time [3.3].
    "ResumeTimeout": "1800",
    # The limit of the login session must not come along: RDMA needs locked memory [3.3].
    "PropagateResourceLimitsExcept": "MEMLOCK",
    "SlurmctldTimeout": "120",
    "SlurmdTimeout": "300",
    "SlurmdSpoolDir": "/var/spool/slurmd",
    # In the folders that their units make (Debian, SchedMD).
    "SlurmctldPidFile": "/run/slurmctld/slurmctld.pid",
    "SlurmdPidFile": "/run/slurm/slurmd.pid",
    "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
    "SlurmdLogFile": "/var/log/slurm/slurmd.log",
}


def owned(cluster: Cluster, plan: Plan) -> dict[str, Pairs]:
    """Settings that follow from the inventory, by the heading that they stand under."""
    return {"Cluster": _identity(cluster), "Scheduling": _scheduling(cluster), "Processes": _processes(cluster),
            "Topology": _topology(cluster, plan), "Programs": _programs(cluster), "Accounting": _accounting(cluster)}


def refused(cluster: Cluster, plan: Plan) -> list[str]:
    """Keys of slurm_options that are ours; Slurm ignores upper and lower case."""
    ours = {key.lower() for pairs in owned(cluster, plan).values() for key in pairs} | {key.lower() for key in REPEATED}
    return [key for key in cluster.settings.options if key.lower() in ours]


def _defaults(cluster: Cluster) -> Pairs:
    given = {key.lower() for key in cluster.settings.options}
    return {key: value for key, value in DEFAULTS.items() if key.lower() not in given}


def _host(host: Host) -> str:
    return f"SlurmctldHost={host.name}({host.address})" if host.address else f"SlurmctldHost={host.name}"


# -- nodes and partitions ---------------------------------------------------------------------------------


def _node_options(node: Node, mem_spec_limit_mib: int) -> str:
    """All but the name: nodes with equal options share a line."""
    found = [f"Sockets={node.sockets}", f"CoresPerSocket={node.cores_per_socket}",
             f"ThreadsPerCore={node.threads_per_core}", f"RealMemory={node.memory_mib}"]
    if mem_spec_limit_mib:
        found.append(f"MemSpecLimit={mem_spec_limit_mib}")
    if node.gpus:
        found.append(f"Gres=gpu:{node.gres_type}:{node.gpus}")
    if node.features:
        found.append(f"Feature={','.join(node.features)}")
    return " ".join([*found, "State=UNKNOWN"])


def mem_spec_limit(cluster: Cluster) -> int:
    """Without cgroups nobody would keep to it."""
    return 0 if cluster.settings.cgroup == "disabled" else cluster.settings.mem_spec_limit_mib


def node_lines(cluster: Cluster) -> list[str]:
    groups: dict[str, list[Node]] = {}
    limit = mem_spec_limit(cluster)
    for node in cluster.nodes:
        groups.setdefault(f"{bool(node.address)} {_node_options(node, limit)}", []).append(node)
    lines = []
    for nodes in groups.values():
        address = f"NodeAddr={hostlist.compress(node.address for node in nodes)} " if nodes[0].address else ""
        lines.append(f"NodeName={hostlist.compress(node.name for node in nodes)} {address}"
                     f"{_node_options(nodes[0], limit)}")
    return lines


def _memory_options(nodes: t.Sequence[Node], limit_mib: int) -> Pairs:
    """A job that asks for no memory gets that of its CPUs; without it, all of the node [3.3].

    One that asks for GPUs alone gets the CPUs of their share, and so their memory.
    """
    found = {"DefMemPerCPU": str(max(1, min((node.memory_mib - limit_mib) // node.cpus for node in nodes)))}
    if all(node.gpus for node in nodes):
        found["DefCpuPerGPU"] = str(max(1, min(node.cpus // node.gpus for node in nodes)))
    return found


def partition_line(part: Partition, nodes: t.Sequence[Node], limit_mib: int, topology: str = "") -> str:
    pairs = {"PartitionName": part.name, "Nodes": hostlist.compress(part.nodes),
             "Default": "YES" if part.default else "NO", "MaxTime": part.max_time}
    given = {key.lower() for key in part.options}
    memory = {} if given & {"defmempercpu", "defmempergpu", "defmempernode"} else _memory_options(nodes, limit_mib)
    pairs.update({key: value for key, value in {**memory, "State": "UP"}.items() if key.lower() not in given})
    if topology:
        pairs["Topology"] = topology
    return " ".join(f"{key}={value}" for key, value in {**pairs, **part.options}.items())


def partition_lines(cluster: Cluster, plan: Plan) -> list[str]:
    known, limit = {node.name: node for node in cluster.nodes}, mem_spec_limit(cluster)
    return [partition_line(part, [known[name] for name in part.nodes], limit, plan.partitions.get(part.name, ""))
            for part in cluster.partitions if part.nodes]


# -- files ------------------------------------------------------------------------------------------------


def _block(title: str, lines: t.Sequence[str]) -> list[str]:
    return ["", f"# {title}", *lines] if lines else []


def whole(cluster: Cluster, plan: Plan) -> str:
    lines = [HEADER, f"# For Slurm {cluster.version}."]
    for title, pairs in owned(cluster, plan).items():
        body = [f"{key}={value}" for key, value in pairs.items()]
        if title == "Cluster":
            body[1:1] = [_host(host) for host in cluster.controllers]
        lines += _block(title, body)
    lines += _block("Daemons", [f"{key}={value}" for key, value in _defaults(cluster).items()])
    lines += _block("This site (slurm_options)", [f"{key}={value}" for key, value in cluster.settings.options.items()])
    lines += _block("Nodes", node_lines(cluster))
    lines += _block("Partitions", partition_lines(cluster, plan))
    return "\n".join(lines) + "\n"


def parts(cluster: Cluster, plan: Plan) -> dict[str, str]:
    """For a cluster that is not ours: its own slurm.conf includes these."""
    return {NODES: "\n".join([HEADER, *node_lines(cluster)]) + "\n",
            PARTITIONS: "\n".join([HEADER, *partition_lines(cluster, plan)]) + "\n"}
