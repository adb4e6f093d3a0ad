# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes below a fake root, as procfs shows those that hold devices or belong to a job."""
from __future__ import annotations

import typing as t
from pathlib import Path

STEP = "/system.slice/slurmstepd.scope/job_{job}/step_{step}/user/task_0"


def verbs(root: Path, devices: t.Sequence[str]) -> None:
    """uverbsN of each RDMA device, in order."""
    for number, device in enumerate(devices):
        folder = root / f"sys/class/infiniband_verbs/uverbs{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ibdev").write_text(f"{device}\n", encoding="ascii")


def process(root: Path, pid: int, comm: str, *files: str, cgroup: str = "/user.slice", environ: bytes = b"",
            cmdline: bytes = b"") -> Path:
    base = root / f"proc/{pid}"
    (base / "fd").mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(("/dev/null", *files)):
        (base / f"fd/{number}").symlink_to(path)
    (base / "comm").write_text(f"{comm}\n", encoding="ascii")
    (base / "cgroup").write_text(f"0::{cgroup}\n", encoding="ascii")
    (base / "environ").write_bytes(environ)
    (base / "cmdline").write_bytes(cmdline or comm.encode() + b"\0")
    return base


def slurm_step(root: Path, pid: int, comm: str, *files: str, job: int = 4242, step: str = "0") -> Path:
    return process(root, pid, comm, *files, cgroup=STEP.format(job=job, step=step))
