# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of failed runs, in the tools' own words and with invented hosts: name -> (text, state, host, hca)."""
from __future__ import annotations

from . import rendering

_HEAD = "\n".join([*rendering.head(rendering.Spec("2.19.6")), "NCCL version 2.29.3+cuda13.1",
                   *rendering.columns(rendering.Spec("2.19.6"))]) + "\n"
_ROWS = "".join("".join(rendering.row(rendering.Spec("2.19.6"), size, 0)) + "\n" for size in (1 << 24, 1 << 26))

LOGS: dict[str, tuple[str, str, str, str]] = {
    "retry": (
        _HEAD + _ROWS +
        "gpu02:31009:32000 [1] transport/net_ib.cc:100 NCCL WARN NET/IB: Got completion from peer 192.0.2.8<4000> with "
        "status=12 opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:198.51.100.9 remoteGids::ffff:198.51.100.1 "
        "hca mlx5_1\n"
        "gpu02:31009:32000 [1] NCCL INFO transport/net.cc:1168 -> 6\n"
        "gpu01:31001:32001 [1] transport/net_ib.cc:100 NCCL WARN NET/IB: Got completion from peer 192.0.2.9<4001> with "
        "status=5 opcode=0 len=0 vendor err 249 (Recv) localGid ::ffff:198.51.100.1 remoteGids::ffff:198.51.100.9 hca "
        "mlx5_1\n"
        "gpu01: Test NCCL failure common.cu:400 'remote process exited or there was a network error / '\n"
        " .. gpu01 pid 31001: Test failure common.cu:547\n",
        "CRASH", "gpu02", "mlx5_1"),
    "retry-2.30": (
        "[2026-02-03 04:05:06] gpu03:5:6 [2] transport/net_ib/p2p.cc:9 NCCL WARN NET/IB: Got completion from peer "
        "2001:db8::1<4000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 hca mlx5_2\n"
        " .. gpu03 pid 5: Test failure common.cu:547\n",
        "CRASH", "gpu03", "mlx5_2"),
    "follower-first": (
        "gpu01:1:2 [0] NCCL WARN NET/IB: Got completion from peer 192.0.2.9<1> with status=5 opcode=0 vendor err 249 "
        "hca mlx5_0\n"
        "gpu02:1:2 [0] NCCL WARN NET/IB: Got completion from peer 192.0.2.8<1> with status=12 opcode=0 vendor err 129 "
        "hca mlx5_3\n",
        "CRASH", "gpu02", "mlx5_3"),
    "modify-qp": (
        "gpu01:1:2 [0] misc/ibvwrap.cc:9 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
        "mlx5_1:1, "
        "curr state INIT, next state RTR, local GID index 3, local GID ::ffff:198.51.100.9, remote GID "
        "::ffff:203.0.113.7\n"
        "gpu01: Test NCCL failure common.cu:9 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n",
        "CRASH", "gpu01", "mlx5_1:1"),
    "hang": (_HEAD + "gpu01: Test timeout (300s) common.cu:1\n .. gpu01 pid 31000: Test failure common.cu:2\n", "HANG",
    "gpu01", ""),
    "time-limit": (_HEAD + "slurmstepd: error: *** STEP 7.0 ON gpu01 CANCELLED AT 2026-02-03T04:05:06 DUE TO TIME "
                           "LIMIT ***\n",
                   "HANG", "gpu01", ""),
    "gpus": ("\n".join(rendering.head(rendering.Spec("2.19.6"))[:5]) +
             "\nInvalid number of GPUs: 8 requested but only 6 were found.\n"
             "Please check the number of processes and GPUs per process.\n .. gpu04 pid 9: Test failure common.cu:1\n",
             "LAUNCH", "gpu04", ""),
    "ssh": ("ssh: connect to host gpu02 port 22: Connection refused\n"
            "ORTE was unable to reliably start one or more daemons.\n", "LAUNCH", "gpu02", ""),
    "slots": ("There are not enough slots available in the system to satisfy the 16\nprocs that were requested by the "
              "application:\n"
              "Either request fewer procs for your application, or make more slots\n", "LAUNCH", "", ""),
    "killed": (_HEAD + _ROWS + "mpirun noticed that process rank 3 with PID 9 on node gpu01 exited on signal 9 "
                               "(Killed).\n",
               "CRASH", "gpu01", ""),
    "ecc": (_HEAD + "gpu02: Test CUDA failure common.cu:5 'uncorrectable ECC error encountered'\n", "CRASH", "gpu02",
    ""),
    "flap": (rendering.render(rendering.Spec("2.19.6")) +
             "gpu01:1:2 [0] NCCL WARN NET/IB : mlx5_4:1 Got async event : port error\n", "CRASH", "gpu01", "mlx5_4"),
    "usage": ("USAGE: all_gather_perf\n\t[-t,--nthreads <num threads>]\n", "INVALID", "", ""),
    "unknown-warning": (_HEAD + "gpu02:1:2 [3] NCCL WARN Something never seen before\n", "CRASH", "gpu02", ""),
    "nothing": ("", "INCOMPLETE", "", ""),
    "header-only": (_HEAD, "INCOMPLETE", "", ""),
}
