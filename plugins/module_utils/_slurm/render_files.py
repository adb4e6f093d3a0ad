# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""All files of a cluster as texts: slurm.conf, gres.conf, cgroup.conf, the topology, slurmdbd.conf. Pure."""
from __future__ import annotations

import hashlib
import itertools
import typing as t

from . import hostlist, render_conf, render_topology
from .model import HEADER, SECRET_FILE, Cluster, Node
from .versions import has

GRES, OUR_GRES, CGROUP, DBD = "gres.conf", "aidc-gres.conf", "cgroup.conf", "slurmdbd.conf"


def _gres_of(node: Node) -> tuple[str, ...]:
    """Lines without the node's name: GPUs with the same cores share one."""
    cores = node.cores or ("",) * len(node.gpu_files)
    lines, start = [], 0
    for near, group in itertools.groupby(cores):
        count = len(list(group))
        files = hostlist.compress(node.gpu_files[start:start + count], pattern=hostlist.FILE)
        lines.append(f"Name=gpu Type={node.gres_type} File={files}" + (f" Cores={near}" if near else ""))
        start += count
    return tuple(lines)


def gres(cluster: Cluster) -> str:
    """Explicit files: autodetection needs a library that distributions leave out [3.2, 3.3]."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in cluster.nodes:
        if node.gpus:
            groups.setdefault(_gres_of(node), []).append(node.name)
    lines = [HEADER, "AutoDetect=off"] if cluster.ownership == "whole" else [HEADER]
    for entries, names in groups.items():
        lines += [f"NodeName={hostlist.compress(names)} {entry}" for entry in entries]
    return "\n".join(lines) + "\n"


def cgroup(cluster: Cluster) -> str:
    lines = [HEADER]
    kind = cluster.settings.cgroup
    if kind == "disabled":
        # An older slurmd knows no `disabled`, and dies of the autodetection on a hybrid machine [3.2, simulation 5].
        return "\n".join([*lines, "CgroupPlugin=disabled" if has(cluster.version, "cgroup_disabled")
                          else "CgroupPlugin=cgroup/v1"]) + "\n"
    lines.append("CgroupPlugin=autodetect" if kind == "auto" else f"CgroupPlugin=cgroup/{kind}")
    return "\n".join([*lines, "ConstrainCores=yes", "ConstrainRAMSpace=yes", "ConstrainDevices=yes"]) + "\n"


def dbd(cluster: Cluster) -> str:
    """The password stands in a file that only the host has: every file of Slurm may include another one."""
    settings, host = cluster.settings, cluster.dbd
    pairs = {
        "AuthType": "auth/munge", "DbdHost": host.name if host else "",
        **({"DbdAddr": host.address} if host and host.address else {}),
        "SlurmUser": settings.user, "LogFile": "/var/log/slurm/slurmdbd.log", "PidFile": "/run/slurmdbd/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql", "StorageHost": settings.database_host,
        "StorageUser": settings.database_user, "StorageLoc": settings.database_name,
    }
    return "\n".join([HEADER, *(f"{key}={value}" for key, value in pairs.items()),
                      "# One line, StoragePass=...; mode 0600, of SlurmUser.",
                      f"Include {settings.config_dir}/{SECRET_FILE}"]) + "\n"


def files(cluster: Cluster, plan: render_topology.Plan) -> dict[str, str]:
    """By name, in the order of reading. A cluster that is not ours gets only what its own files include."""
    if cluster.ownership == "include":
        found = render_conf.parts(cluster, plan)
        return {**found, OUR_GRES: gres(cluster)} if cluster.has_gpus else found
    found = {"slurm.conf": render_conf.whole(cluster, plan)}
    if cluster.has_gpus:
        found[GRES] = gres(cluster)
    found[CGROUP] = cgroup(cluster)
    found.update(render_topology.files(cluster, plan))
    if cluster.dbd is not None:
        found[DBD] = dbd(cluster)
    return found


def absent(files_: t.Collection[str]) -> list[str]:
    """Names that must not lie beside the others: topology.yaml wins over topology.conf, and neither is for `flat`."""
    return [name for name in ("topology.conf", "topology.yaml", GRES) if name not in files_]


def digests(files_: t.Mapping[str, str]) -> dict[str, str]:
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files_.items()}
