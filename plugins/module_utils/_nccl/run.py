# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What the module nccl_test does: launch, parse, judge. A log that exists is judged by `_gate.judging`."""
from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import math
import os
import shutil
import typing as t
from dataclasses import dataclass
from pathlib import Path

from .._access import processes
from .._access.io import KEY, Store, addresses_of, here, own_directory
from .._access.model import Record
from .._host.errors import AidcError, Problem
from .._host.files import write_atomic
from .._host.machine import Machine
from . import launch, strays
from .io import Bounds, Outcome, bounded_text, prune_logs
from .io import launch as start
from .judge import judge
from .model import Cell, Expected, Limit, Result, Verdict
from .parse import parse_file

MAX_ROWS = 64
# After its time limit a run is ended; this much later it is surely over.
END_SECONDS = 60


@dataclass(frozen=True)
class Criteria:
    min_busbw_gbps: float
    pass_fraction: float = 0.9
    allow_simulated: bool = False
    allow_socket: bool = False

    def limit(self) -> Limit:
        return Limit(self.min_busbw_gbps, "limit given by the operator", {"min_busbw_gbps": self.min_busbw_gbps},
                     self.pass_fraction, min(0.8, self.pass_fraction))

    def problems(self) -> list[Problem]:
        found = []
        if math.isnan(self.min_busbw_gbps) or self.min_busbw_gbps <= 0:
            found.append(Problem("min_busbw_gbps", str(self.min_busbw_gbps), "more than 0"))
        if not 0 < self.pass_fraction <= 1:
            found.append(Problem("pass_fraction", str(self.pass_fraction), "more than 0, at most 1"))
        return found


@dataclass
class Report:
    """What the module returns; ``verdict`` is None where nothing was run (check mode)."""

    command: list[str]
    verdict: Verdict | None = None
    result: Result | None = None
    evidence: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    path: str = ""
    causes: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)

    def as_dict(self) -> dict[str, t.Any]:
        text = bounded_text(Path(self.path)) if self.path and os.path.exists(self.path) else ""
        return {
            "changed": False, "command": self.command, "commands": [self.command] if self.command else [],
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "result": summary(self.result) if self.result else None,
            "causes": self.causes, "evidence": self.evidence, "log_path": self.path, "log": text,
        }


# -- what is shown of a result ------------------------------------------------------------------------


def _cell(cell: Cell | None) -> dict[str, t.Any] | None:
    if cell is None:
        return None
    return {"time_us": cell.time_us, "algbw_gbps": cell.algbw_gbps, "busbw_gbps": cell.busbw_gbps, "wrong": cell.wrong}


def summary(result: Result) -> dict[str, t.Any]:
    """The part of a parsed log that a reader wants; the whole log lies beside it."""
    whole = result.to_dict()
    names = ("tests_version", "nccl_version", "peak_busbw_gbps", "peak_size_bytes", "average_computed", "row_count",
             "wrong_cells", "checked_cells", "unchecked_cells", "verification", "simulated", "transport", "notes",
             "findings")
    return {
        **{name: whole[name] for name in names},
        "ranks": result.ran.ranks, "hosts": result.ran.hosts, "collective": result.ran.collective,
        "rows": [{"size_bytes": row.size_bytes, "out_of_place": _cell(row.out_of_place),
                  "in_place": _cell(row.in_place)} for row in result.rows[-MAX_ROWS:]],
        "errors": whole["errors"][:8],
    }


def judge_file(path: Path, criteria: Criteria, expected: Expected) -> tuple[Verdict, Result]:
    with open(path, "rb") as stream:
        result = parse_file(stream)
    return judge(result, criteria.limit(), expected), result


# -- state: tested ------------------------------------------------------------------------------------


def _refuse(found: list[Problem]) -> None:
    if found:
        raise AidcError(found)


def network_of(address: str, machine: Machine) -> str:
    """The network of the head's own address, as the launcher wants it; empty if the address is not our own."""
    wanted = set(addresses_of(address))
    done = machine.tool("ip", "-j", "-4", "address", "show")
    try:
        links = json.loads(done.stdout) if done.state == "ok" else []
    except ValueError:
        links = []
    for entry in (info for link in links for info in link.get("addr_info", [])):
        if entry.get("local") in wanted:
            return str(ipaddress.ip_interface(f"{entry['local']}/{entry['prefixlen']}").network)
    return ""


def resolve(job: launch.Job, machine: Machine) -> tuple[launch.Job, int]:
    """The job with the programs' absolute names and the bootstrap network; the launcher's major version."""
    found: list[Problem] = []
    paths: dict[str, str] = {}
    for option, name in (("launcher", job.launcher), ("binary", job.binary)):
        path = shutil.which(name, path=job.environment.get("PATH"))
        if path is None:
            found.append(Problem(option, f"{name}: no such program on this host", "a program on the PATH or its path",
                                 "nccl_gate_binary" if option == "binary" else "install Open MPI"))
        paths[option] = path or name
    _refuse(found)
    version = machine.tool(paths["launcher"], "--version")
    major = launch.major_of(version.stdout)
    if major is None:
        raise AidcError([Problem(paths["launcher"], version.why() if version.state != "ok" else version.stdout[:80],
                                 "Open MPI 4 or 5")])
    network = job.network or network_of(job.hosts[0].address, machine)
    return dataclasses.replace(job, network=network, launcher=paths["launcher"], binary=paths["binary"]), major


def refuse_root() -> None:
    """Open MPI refuses root, too, and a run needs nothing that only root may do."""
    if os.geteuid() == 0:
        raise AidcError([Problem("user", "root", "a normal user", "run the task without become")])


def not_run(reason: str, criteria: Criteria) -> Verdict:
    return Verdict("LAUNCH", reason, criteria.limit())


def planned(job: launch.Job, criteria: Criteria, machine: Machine) -> Report:
    """Check mode: what would be run."""
    _refuse(criteria.problems())
    try:
        job, major = resolve(job, machine)
    except AidcError:
        # A host whose programs come in this same play.
        major = 5
    return Report(launch.command(job, major))


def tested(job: launch.Job, criteria: Criteria, bounds: Bounds, store: Store, machine: Machine) -> Report:
    _refuse(criteria.problems())
    refuse_root()
    launch.check(job)
    try:
        job, major = resolve(job, machine)
    except AidcError as error:
        return Report([], not_run("; ".join(problem.text() for problem in error.problems), criteria))
    argv = launch.command(job, major)
    record = store.record(job.run_id)
    if record is None or not (store.run_dir(job.run_id) / KEY).exists():
        return Report(argv, not_run(f"the key of run {job.run_id} is not on this host: another run swept it, "
                                    "or run_access state=made did not run here", criteria))
    for name, text in launch.files(job).items():
        write_atomic(Path(job.file(name)), text, 0o600, 0o700)
    own_directory(Path(job.file("tmp")))
    log = _log_file(store, job.run_id)
    with alive(store, record, bounds.seconds + END_SECONDS):
        outcome = start(argv, launch.environment(job, os.environ), job.mark, log, bounds)
        # A search may follow at once, and must not measure beside what the launcher could not take with it.
        ended = outcome.exit_code == 0 or outcome.not_started
        left = [] if ended else strays.end_on(job, job.hosts[1:])
    report = judged_run(job, argv, log, criteria, outcome)
    report.evidence["left_on_hosts"] = left
    return report


@contextlib.contextmanager
def alive(store: Store, record: Record, seconds: float, keep_seconds: float = 0.0) -> t.Iterator[None]:
    """The run counts as alive while this process works for it, and ``keep_seconds`` longer; then as finished."""
    own = here()
    record = dataclasses.replace(record, host=own.host, boot_id=own.boot_id, finished=False)
    store.write_record(dataclasses.replace(
        record, until=own.now + seconds, pid=os.getpid(), pid_start=processes.start_of(os.getpid()) or ""))
    try:
        yield
    finally:
        # Swept meanwhile: then there is nothing to say.
        if store.record(record.run_id) is not None:
            store.write_record(dataclasses.replace(record, until=here().now + keep_seconds, pid=None, pid_start="",
                                                   finished=keep_seconds <= 0))


def _log_file(store: Store, run_id: str) -> Path:
    directory = store.base / "logs"
    own_directory(directory)
    prune_logs(directory)
    return directory / f"{run_id}.log"


def judged_run(job: launch.Job, argv: list[str], log: Path, criteria: Criteria, outcome: Outcome) -> Report:
    """What came of a launch."""
    if outcome.not_started:
        return Report(argv, not_run(outcome.not_started, criteria), None, outcome.evidence())
    expected = launch.expected(
        job, exit_code=outcome.exit_code, timed_out=outcome.timed_out,
        allow_simulated=criteria.allow_simulated, allow_socket=criteria.allow_socket,
    )
    verdict, result = judge_file(log, criteria, expected)
    if outcome.too_much_output and verdict.state == "PASS":
        verdict = dataclasses.replace(verdict, state="INCOMPLETE", reason="the run was ended: it printed too much")
    return Report(argv, verdict, result, outcome.evidence(), str(log))
