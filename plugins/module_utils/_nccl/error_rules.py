# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Error lines and what they mean: data only, one row each; `errors.py` evaluates it.

The first row whose needle and pattern fit a line wins, so a cause stands before the wrapper that quotes
it. ``role``: a *cause* can be blamed, a *follower* came after another rank's trouble, a *wrapper* only
says that something failed, a *note* changes nothing. ``state`` is what the line makes of a run that
did not reach its end; with ``always`` it also fails a run that did. Sources: ``facts`` is the project's
reference on this gate (numbers of public issues are given where they show the line), the rest is named.
"""
from __future__ import annotations

import typing as t

from .model import Role


class ErrorRule(t.NamedTuple):
    id: str
    needle: str
    pattern: str
    role: Role
    category: str
    state: str
    always: bool
    meaning: str
    action: str
    source: str


_PORT = "Compare both ends of this rail: link, optics, VLAN, route, PFC counters."
_MEMLOCK = "Set LimitMEMLOCK=infinity (slurmd: also PropagateResourceLimitsExcept=MEMLOCK; containers: memlock=-1)."
_FM = "Stop the jobs, restart the fabric manager, reset the GPUs."

# What the machine does wrong. The rest of the table stands in `error_rules_run`.
MACHINE_RULES: tuple[ErrorRule, ...] = (
    # -- Network: facts 2.2
    ErrorRule("ib-flushed", "Got completion from peer", r"(?:status=|error )(?:IBV_WC_WR_FLUSH_ERR\()?5\b",
              "follower", "network", "CRASH", True, "The queue was flushed after an error elsewhere.",
              "Look for the first completion error.", "facts 2.2, nccl#1814"),
    ErrorRule("ib-retry", "Got completion from peer", r"(?:status=|error )(?:IBV_WC_RETRY_EXC_ERR\()?12\b", "cause",
              "network", "CRASH", True, "Retries used up: link down, wrong VLAN or route, losses, or the peer died.",
              _PORT, "facts 2.2, nccl#1405, nccl#1664, nccl#1814"),
    ErrorRule("ib-protection", "Got completion from peer", r"(?:status=|error )(?:IBV_WC_LOC_PROT_ERR\()?4\b",
              "cause", "gdr", "CRASH", True,
              "Local protection error: the GPUDirect write failed, often because PCIe ACS is on.",
              "Check ACSCtl on the GPU-NIC path, the IOMMU, nvidia-peermem or dma-buf.", "facts 2.2, nccl-tests#252"),
    ErrorRule("ib-completion", "Got completion from peer", "", "cause", "network", "CRASH", True,
              "An RDMA operation ended with an error.", _PORT, "facts 2.2"),
    ErrorRule("ib-modify-qp-timeout", "ibv_modify_qp failed", r"\b110\b|timed out", "cause", "network", "CRASH", True,
              "The peer's GID could not be resolved: no route between these rails.",
              "Route between the rails, or NCCL_CROSS_NIC=0.", "facts 2.2, nccl#2013"),
    ErrorRule("ib-modify-qp-gid", "ibv_modify_qp failed", r"\b22\b|Invalid argument", "cause", "network", "CRASH",
              True, "The GID index is wrong or empty.",
              "Unset NCCL_IB_GID_INDEX (NCCL >= 2.21 chooses) and check the GIDs for RoCE v2.", "facts 2.2"),
    ErrorRule("ib-modify-qp", "ibv_modify_qp failed", "", "cause", "network", "CRASH", True,
              "A queue pair could not be connected.", _PORT, "facts 2.2, nccl-tests#227"),
    ErrorRule("ib-memlock", "Cannot allocate memory", "ibv_(?:reg_mr|create_cq|create_qp)", "cause", "memory",
              "CRASH", True, "The limit of locked memory is too small.", _MEMLOCK, "facts 2.2, nccl-tests#206"),
    ErrorRule("ib-verbs", "Call to ibv_", "failed", "cause", "network", "CRASH", True, "A verbs call failed.",
              "Check the driver, the device and the container's access to it.", "facts 2.2"),
    ErrorRule("ib-async", "Got async event", "", "cause", "network", "CRASH", True,
              "A port or GID changed during the run: a link that flaps.", _PORT, "facts 2.2"),
    ErrorRule("ib-async-fatal", "async fatal event", "", "cause", "network", "CRASH", True,
              "A queue pair or port failed during the run.", _PORT, "facts 2.2"),
    ErrorRule("ib-gid-changed", "GID table changed", "", "cause", "network", "CRASH", True,
              "The GIDs of a port changed during the run.",
              "Find what changed its addresses (network manager, carrier).", "facts 2.2"),
    ErrorRule("ib-speed-changed", "speed change detected", "", "cause", "network", "CRASH", True,
              "A port changed its speed during the run.", _PORT, "facts 2.2"),
    ErrorRule("gdr-disabled", "GPU Direct RDMA Disabled", "", "note", "gdr", "", False,
              "Data goes through host memory.", "Load nvidia-peermem or use dma-buf; check NCCL_NET_GDR_LEVEL.",
              "facts 2.1, nccl#1537"),
    ErrorRule("nvls-nic", "Could not find NIC for rank", "", "cause", "config", "CRASH", False,
              "Topology file or NIC filter does not fit this machine.", "Check NCCL_TOPO_FILE and NCCL_IB_HCA.",
              "facts 2.2, azurehpc-health-checks#142"),
    # -- NVLink, fabric, GPU: facts 2.2
    ErrorRule("imex-channel", "is available but not working on this system", "", "cause", "imex", "CRASH", True,
              "No IMEX channel, or the IMEX daemons are not ready.",
              "Give the job a channel (ComputeDomain or device); check nvidia-imex-ctl -N.", "facts 2.2"),
    ErrorRule("cuda-800", "operation not permitted", "[Cc]uda failure 800|CUDA failure", "cause", "imex", "CRASH",
              True, "CUDA refused an operation: usually no IMEX channel in the container.",
              "Check the IMEX channel device and nvidia-imex-ctl -N.", "facts 2.2"),
    ErrorRule("nvls-bind", "NVLink SHARP (NVLS) Multicast memory", "", "cause", "nvlink", "CRASH", True,
              "Multicast memory could not be bound: the fabric manager was restarted without a GPU reset.", _FM,
              "facts 2.2"),
    ErrorRule("nvls-cuda", "failure", r"nvls\.cc.{0,80}Cuda failure (?:1|401|999)\b|Cuda failure (?:401|999)\b",
              "cause", "nvlink", "CRASH", True,
              "NVLink SHARP failed: the fabric manager was restarted without a GPU reset.",
              _FM, "facts 2.2, nccl#1338, nccl#1672, nccl#1788"),
    ErrorRule("cuda-802", "system not yet initialized", "", "cause", "nvlink", "CRASH", True,
              "The fabric manager is not running or not ready.",
              "Start nvidia-fabricmanager before the job; check its state.",
              "facts 2.2, nccl-tests#264, nccl-tests#338"),
    ErrorRule("cuda-ecc", "uncorrectable ECC error", "", "cause", "gpu", "CRASH", True,
              "A GPU met an uncorrectable memory error.", "Drain the node; look for Xid 48, 63, 64, 94, 95.",
              "CUDA Runtime API: cudaErrorECCUncorrectable"),
    ErrorRule("cuda-illegal", "illegal memory access", "", "cause", "gpu", "CRASH", True,
              "A kernel touched memory that it may not.", "Repeat on the node alone; look for Xid 13, 31.",
              "CUDA Runtime API: cudaErrorIllegalAddress"),
    ErrorRule("cuda-oom", "out of memory", "[Cc][Uu][Dd][Aa].{0,80}out of memory|failure.{0,200}out of memory",
              "cause", "memory", "CRASH", True, "GPU memory is used up.",
              "Ask for smaller sizes (-e), or free the GPU.", "facts 1.2"),
    ErrorRule("xid", "NVRM: Xid", "", "cause", "gpu", "CRASH", True, "The driver reported a GPU fault.",
              "Look the Xid up and drain the node if it is a hardware one.", "NVIDIA Xid errors document"),
    ErrorRule("shm", "failed to extend /dev/shm", "", "cause", "memory", "CRASH", True, "/dev/shm is too small.",
              "--shm-size, or an emptyDir with medium Memory.", "facts 2.2"),
)
