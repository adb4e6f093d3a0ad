# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What a run needs to be started: command line, environment, files. Pure.

Open MPI carries the bootstrap only: its own traffic is kept on one network, away from UCX and the rails
(facts nccl-gate 5.2). Values of variables stand in the environment, never in the command line.
"""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._access.model import MARK_VARIABLE, mark_of
from .._host.errors import AidcError, Problem
from .header import collective_of
from .model import Expected

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Shown by `mpirun --version`: "mpirun (Open MPI) 5.0.7"; HPC-X: "mpirun (Open MPI) 4.1.7a1".
_VERSION = re.compile(r"\(Open MPI\) (\d+)\.")
# What a login shell would give and the launcher needs; nothing else of our own environment goes along.
_BASE_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "TZ")


@dataclass(frozen=True)
class Host:
    """``hostname`` is what the host calls itself; it stands in the log."""

    name: str
    address: str
    hostname: str = ""
    port: int = 22
    host_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A run as it was asked for; ``hosts[0]`` is the head."""

    hosts: tuple[Host, ...]
    run_id: str
    run_dir: str
    user: str
    gpus_per_host: int
    binary: str = "all_reduce_perf"
    launcher: str = "mpirun"
    processes_per_host: int = 1
    min_bytes: str = "1M"
    max_bytes: str = "1G"
    step_factor: int = 2
    iterations: int = 20
    warmup_iterations: int = 5
    check: int = 1
    network: str = ""
    environment: t.Mapping[str, str] = field(default_factory=dict)
    connect_timeout_seconds: int = 15
    # One of several runs under the same key, at the same time on other hosts: it has its own mark and host file.
    part: str = ""

    @property
    def mark(self) -> str:
        return mark_of(self.run_id, self.part)

    @property
    def host_file(self) -> str:
        return f"hosts-{self.part}" if self.part else "hosts"

    def file(self, name: str) -> str:
        return f"{self.run_dir}/{name}"

    @property
    def ranks(self) -> int:
        return len(self.hosts) * self.gpus_per_host


def bytes_of(text: str) -> int | None:
    """A size as nccl-tests reads it: K, M and G are binary."""
    found = re.fullmatch(r"(\d+)([KMG]?)", text.strip(), re.IGNORECASE)
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()] if found else None


def problems(job: Job) -> list[Problem]:
    """What keeps the job from being started, before anything is."""
    found = []
    for host in job.hosts:
        if not ADDRESS.fullmatch(host.address):
            found.append(Problem(f"hosts: {host.name}.address", repr(host.address), "a host name or an IPv4 address"))
        if not host.host_keys:
            found.append(Problem(f"hosts: {host.name}.host_keys", "none", "the host's public host keys",
                                 "run_access state=authorized returns them"))
    addresses = [host.address for host in job.hosts]
    if len(set(addresses)) != len(addresses):
        found.append(Problem("hosts", "an address twice", "each host once"))
    if job.gpus_per_host < 1 or job.processes_per_host < 1 or job.gpus_per_host % job.processes_per_host:
        found.append(Problem("processes_per_host", str(job.processes_per_host),
                             f"a divisor of gpus_per_host ({job.gpus_per_host})"))
    low, high = bytes_of(job.min_bytes), bytes_of(job.max_bytes)
    if not low or not high or low > high:
        found.append(Problem("min_bytes, max_bytes", f"{job.min_bytes}, {job.max_bytes}", "sizes such as 1M, 8G"))
    found += [Problem("environment", repr(name), "a variable's name") for name in job.environment
              if not VARIABLE.fullmatch(name)]
    if re.search(r"\s", job.run_dir):
        found.append(Problem("run_dir", repr(job.run_dir), "a path without blanks", "the launcher splits at them"))
    return found


def check(job: Job) -> None:
    found = problems(job)
    if found:
        raise AidcError(found)


def major_of(version_text: str) -> int | None:
    """Major version of Open MPI; None for another launcher."""
    found = _VERSION.search(version_text)
    return int(found[1]) if found else None


# -- files --------------------------------------------------------------------------------------------


def host_file(job: Job) -> str:
    return "".join(f"{host.address} slots={job.processes_per_host}\n" for host in job.hosts)


def known_hosts(job: Job) -> str:
    lines = []
    for host in job.hosts:
        name = host.address if host.port == 22 else f"[{host.address}]:{host.port}"
        lines += [f"{name} {key}\n" for key in host.host_keys]
    return "".join(lines)


def ssh_config(job: Job) -> str:
    """For ssh the first value counts, so the hosts stand before what holds for all."""
    ports = "".join(f"Host {host.address}\n  Port {host.port}\n" for host in job.hosts if host.port != 22)
    settings = {
        "User": job.user, "IdentityFile": job.file("id"), "IdentitiesOnly": "yes", "IdentityAgent": "none",
        "UserKnownHostsFile": job.file("known_hosts"), "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes", "UpdateHostKeys": "no", "CheckHostIP": "no",
        "PreferredAuthentications": "publickey", "BatchMode": "yes",
        "ConnectTimeout": job.connect_timeout_seconds, "ServerAliveInterval": 10, "ServerAliveCountMax": 3,
        "ControlMaster": "no", "ControlPath": "none", "ClearAllForwardings": "yes",
    }
    return ports + "Host *\n" + "".join(f"  {name} {value}\n" for name, value in settings.items())


def files(job: Job) -> dict[str, str]:
    return {job.host_file: host_file(job), "known_hosts": known_hosts(job), "ssh_config": ssh_config(job)}


# -- command ------------------------------------------------------------------------------------------


def _prrte(job: Job, agent: str) -> list[str]:
    """Open MPI 5: the runtime is PRRTE. Its session folders go into the run's, which is removed."""
    settings = {"plm": "ssh", "plm_ssh_agent": agent, "plm_ssh_no_tree_spawn": "1",
                "prte_tmpdir_base": job.file("tmp")}
    if job.network:
        settings["prte_if_include"] = job.network
    return [word for name, value in settings.items() for word in ("--prtemca", name, value)]


def _orte(job: Job, agent: str) -> list[str]:
    """Open MPI 4 and HPC-X."""
    settings = {"plm": "rsh", "plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": "1",
                "orte_tmpdir_base": job.file("tmp")}
    if job.network:
        settings["oob_tcp_if_include"] = job.network
    return [word for name, value in settings.items() for word in ("--mca", name, value)]


def command(job: Job, major: int) -> list[str]:
    runtime = _prrte if major >= 5 else _orte
    argv = [job.launcher, *runtime(job, f"ssh -F {job.file('ssh_config')}")]
    mpi = {"pml": "^ucx", "osc": "^ucx", "coll": "^hcoll", "btl": f"self,{'sm' if major >= 5 else 'vader'},tcp"}
    if job.network:
        mpi["btl_tcp_if_include"] = job.network
    argv += [word for name, value in mpi.items() for word in ("--mca", name, value)]
    argv += ["--hostfile", job.file(job.host_file), "-np", str(len(job.hosts) * job.processes_per_host),
             "--map-by", f"ppr:{job.processes_per_host}:node", "--bind-to", "none"]
    argv += [word for name in sorted({MARK_VARIABLE, *job.environment}) for word in ("-x", name)]
    return [*argv, *test_command(job)]


def test_command(job: Job) -> list[str]:
    return [
        job.binary, "-b", job.min_bytes, "-e", job.max_bytes, "-f", str(job.step_factor),
        "-g", str(job.gpus_per_host // job.processes_per_host), "-n", str(job.iterations),
        "-w", str(job.warmup_iterations), "-c", str(job.check),
    ]


def environment(job: Job, own: t.Mapping[str, str]) -> dict[str, str]:
    """The launcher's environment: a few names of ours, what was asked for, and the run's mark."""
    base = {name: own[name] for name in _BASE_VARIABLES if name in own}
    return {**base, "LC_ALL": "C", **job.environment, MARK_VARIABLE: job.mark}


def expected(job: Job, **seen: t.Any) -> Expected:
    """What the log must show, for the judge; ``seen`` adds what was seen of the end."""
    return Expected(
        collective=collective_of(job.binary) or None, ranks=job.ranks, nodes=len(job.hosts),
        hosts=tuple(host.hostname or host.name for host in job.hosts),
        min_bytes=bytes_of(job.min_bytes), max_bytes=bytes_of(job.max_bytes), **seen,
    )
