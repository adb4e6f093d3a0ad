# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Parse what tells who uses an RDMA device. Raises ValueError for text that is not rdma's."""
from __future__ import annotations

import json
import re
import typing as t

from .model import QueuePair

# The types that connect two ends; GSI, SMI and UD belong to the kernel's own services [iproute2 rdma/res-qp.c].
_CONNECTED = ("RC", "XRC_INI", "XRC_TGT")
# cgroup v2 /system.slice/[NODE_]slurmstepd.scope/job_N/step_M/..., v1 /slurm[_NODE]/uid_U/job_N/step_M/...; since 26.05
# the job's folder may have another name than job_N (CgroupJobIdPaths) [slurm.schedmd.com cgroup_v2; SchedMD/slurm
# src/plugins/cgroup; driver-slurm-k8s.md 3.4].
_SLURM = re.compile(r"(?:slurmstepd\.scope|/slurm[^/]*/uid_\d+)/(?:job_)?(?P<job>[^/]+)/(?:step_)?(?P<step>[^/\s]+)")
# The title that slurmstepd gives itself, also where Slurm uses no cgroups [SchedMD/slurm slurmstepd.c].
_STEPD = re.compile(r"slurmstepd: \[(?P<job>[^.\]\s]+)\.(?P<step>[^\]\s]+)\]")
# kubepods-burstable-podUID.slice/cri-containerd-ID.scope or kubepods/burstable/podUID/ID; a static pod's UID is a hash
# [kubernetes pkg/kubelet/cm/cgroup_manager_linux.go, pod_container_manager_linux.go].
_POD = re.compile(r"kubepods\S*?pod(?P<uid>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})")
_CONTAINER = re.compile(r"(?P<id>[0-9a-f]{64})(?:\.scope)?$", re.MULTILINE)
_UVERBS = re.compile(r"/dev/infiniband/(uverbs\d+)(?: \(deleted\))?$")
_GPU = re.compile(r"/dev/nvidia\d+(?: \(deleted\))?$")
_OPTIONS_RDMA = re.compile(r"(?:^|,)(?:proto=)?rdma6?(?:,|$)")


def queue_pairs(text: str) -> tuple[QueuePair, ...]:
    """Connections in ``rdma -j resource show qp``."""
    data = json.loads(text.strip() or "[]")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError("not a JSON list of objects")
    found = [QueuePair(str(item.get("ifname", "")), str(item.get("comm", "unknown")), item.get("pid"))
             for item in data if item.get("type") in _CONNECTED]
    if any("ifname" not in item for item in data if item):
        raise ValueError("an entry without ifname")
    return tuple(dict.fromkeys(found))


def slurm_job(job: str, step: str) -> str:
    return f"Slurm job {job} step {step}"


def cgroup_job(text: str) -> tuple[str, bool]:
    """(the job in words, whether it is a step of Slurm) of /proc/PID/cgroup."""
    match = _SLURM.search(text)
    if match:
        return slurm_job(match["job"], match["step"]), True
    match = _POD.search(text)
    if not match:
        return "", False
    uid, container = match["uid"].replace("_", "-"), _CONTAINER.search(text)
    return f"pod {uid}" + (f" container {container['id'][:12]}" if container else ""), False


def stepd_job(cmdline: bytes) -> str:
    """The step that a slurmstepd serves, by /proc/PID/cmdline; "" for other processes."""
    match = _STEPD.match(cmdline.replace(b"\0", b" ").decode("utf-8", errors="replace"))
    return slurm_job(match["job"], match["step"]) if match else ""


def environment_job(environ: bytes) -> str:
    """The step that a process was started by, as Slurm tells it in /proc/PID/environ. Nothing else is looked at."""
    values = dict(entry.split(b"=", 1) for entry in environ.split(b"\0")
                  if entry.startswith((b"SLURM_JOB_ID=", b"SLURM_STEP_ID=")))
    job, step = (values.get(key, b"").decode("ascii", errors="replace") for key in (b"SLURM_JOB_ID", b"SLURM_STEP_ID"))
    return slurm_job(job, step or "batch") if job else ""


def uverbs(path: str) -> str | None:
    """``uverbs0`` of an open device file, in a container too, whose root may stand before it."""
    match = _UVERBS.search(path)
    return match.group(1) if match else None


def is_gpu(path: str) -> bool:
    """A GPU itself; nvidiactl and nvidia-uvm are opened to ask only, too."""
    return bool(_GPU.search(path))


def rdma_mounts(mountinfo: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(words, addresses of the servers) of file systems over RDMA in /proc/self/mountinfo [host-setup.md 1.6]."""
    found = []
    for line in mountinfo.splitlines():
        mount, separator, rest = line.partition(" - ")
        fields, left = rest.split(), mount.split()
        if not separator or len(fields) < 2 or len(left) < 5:
            continue
        servers = _servers(fields[0], fields[1], fields[2] if len(fields) > 2 else "")
        if servers is not None:
            found.append((f"{fields[0]} {fields[1]} at {left[4]}", servers))
    return tuple(found)


def _servers(kind: str, source: str, options: str) -> tuple[str, ...] | None:
    """None: not over RDMA. BeeGFS names its servers in a file of its own, and may use RDMA or not."""
    if kind in ("nfs", "nfs4") and _OPTIONS_RDMA.search(options):
        return tuple(re.findall(r"(?:^|,)addr=([^,]+)", options))
    if kind == "lustre" and "@o2ib" in source:
        return tuple(re.findall(r"([^,:@]+)@o2ib", source))
    return () if kind == "beegfs" else None


def nvme_rdma_server(transport: str, address: str) -> str | None:
    """The server of an NVMe controller over RDMA, by its files in /sys/class/nvme."""
    match = re.search(r"(?:^|,)traddr=([^,]+)", address)
    return match.group(1) if transport == "rdma" and match else None


def texts(*parts: t.Iterable[str]) -> tuple[str, ...]:
    """All of them in order, each once."""
    return tuple(dict.fromkeys(text for part in parts for text in part))
