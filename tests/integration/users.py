# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of RDMA devices in a lab host: real processes with the device file open, in a real cgroup of Slurm's names."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab_plugin import Lab

STEP = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_{job}/step_{step}/user/task_0"
# Called as the program that the test wants to see; open to read and write, as libibverbs does.
PROGRAM = """\
import os, time
{move}
held = [os.open(path, os.O_RDWR) for path in {files!r}]
open("/run/{comm}.pid", "w").write(str(os.getpid()))
time.sleep(3600)
"""
MOVE = """\
os.makedirs({step!r}, exist_ok=True)
open({step!r} + "/cgroup.procs", "w").write(str(os.getpid()))"""


@dataclass(frozen=True)
class User:
    pid: int
    words: str


@contextmanager
def user(lab: Lab, host: str, comm: str, *files: str, job: int | None = None) -> Iterator[User]:
    """A process that holds ``files`` for the time of the block; with a job it is a task of its step 0."""
    move = "" if job is None else MOVE.format(step=STEP.format(job=job, step=0))
    program = PROGRAM.format(move=move, files=list(files), comm=comm)
    # systemd starts it: what comes in from outside is in no cgroup of the host.
    lab.inside(host, "sh", "-c", f"cp /usr/bin/python3 /run/{comm} && rm -f /run/{comm}.pid && "
               f"systemd-run --quiet --collect --unit={comm} -p Delegate=yes /run/{comm} -c \"$1\"", "sh", program)
    shown = lab.inside(host, "sh", "-c", f"for i in $(seq 50); do test -s /run/{comm}.pid && break; sleep 0.1; done; "
                       f"cat /run/{comm}.pid")
    pid = int(shown.stdout)
    name = f"Slurm job {job} step 0 (pid {pid} {comm})" if job is not None else f"pid {pid} {comm}"
    try:
        yield User(pid, name)
    finally:
        lab.inside(host, "sh", "-c", f"kill {pid}; while kill -0 {pid}; do sleep 0.1; done", check=False)
