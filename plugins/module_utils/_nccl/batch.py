# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What the module nccl_batch does: many launches under the key of one run, those that share no host side by side.

Each launch has a mark of its own (`Job.part`), so that ending one leaves its neighbours alone.
"""
from __future__ import annotations

import dataclasses
import os
import re
import threading
import typing as t
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from .._access.io import KEY, Store, own_directory
from .._host.errors import AidcError, Problem
from .._host.files import write_atomic
from .._host.machine import Machine
from . import launch, strays
from .io import Bounds, Outcome, bounded_text, ending_on_signal
from .io import launch as start
from .run import END_SECONDS, Criteria, Report, alive, judged_run, network_of, refuse_root, resolve

PART = re.compile(r"[A-Za-z0-9_-]{1,32}")
LOG_HEAD, LOG_TAIL = 2 * 1024, 6 * 1024
# Of these the log says nothing that the verdict does not.
_PLAIN = ("PASS", "SLOW")


@dataclass(frozen=True)
class Item:
    """One launch. ``needs``: an earlier one on the same hosts; if that hangs, this one is not tried."""

    job: launch.Job
    criteria: Criteria
    seconds: float
    needs: str = ""

    @property
    def id(self) -> str:
        return self.job.part

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(host.name for host in self.job.hosts)


@dataclass
class Answer:
    """``report`` is None for a launch that was not tried."""

    item: Item
    report: Report | None = None
    left: list[str] = dataclasses.field(default_factory=list)
    log: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        plain: dict[str, t.Any] = {"id": self.item.id, "hosts": [host.name for host in self.item.job.hosts]}
        if self.report is None or self.report.verdict is None:
            return {**plain, "verdict": None}
        verdict, result, evidence = self.report.verdict.to_dict(), self.report.result, self.report.evidence
        names = ("state", "label", "reason", "ratio", "culprit", "simulated")
        reasons = self.report.verdict.details.get("reasons", ())
        return {
            **plain, "verdict": {name: verdict[name] for name in names},
            "whole": bool(result) and all(reason["state"] != "INCOMPLETE" for reason in reasons),
            "peak_busbw_gbps": result.peak_busbw_gbps if result else None,
            "seconds": evidence.get("seconds"), "exit_code": evidence.get("exit_code"), "left": self.left,
            "log": self.log,
        }


# -- order ------------------------------------------------------------------------------------------------


def problems(items: t.Sequence[Item], parallel: int) -> list[Problem]:
    found = [] if parallel > 0 else [Problem("parallel", str(parallel), "1 or more")]
    seen: dict[str, frozenset[str]] = {}
    for item in items:
        if not PART.fullmatch(item.id) or item.id in seen:
            found.append(Problem("runs: id", repr(item.id), "1 to 32 letters, digits, - and _, each once"))
        if item.needs and seen.get(item.needs) != item.hosts:
            found.append(Problem(f"runs: {item.id}.needs", repr(item.needs), "an earlier run on the same hosts"))
        if item.seconds <= 0:
            found.append(Problem(f"runs: {item.id}.time_limit_seconds", f"{item.seconds:g}", "more than 0"))
        seen[item.id] = item.hosts
        found += item.criteria.problems() + launch.problems(item.job)
    return found


def ready(pending: t.Sequence[Item], busy: t.Iterable[str], room: int) -> list[Item]:
    """What may start now. None overtakes an earlier one that waits for the same host."""
    taken = set(busy)
    found: list[Item] = []
    for item in pending:
        if len(found) < room and taken.isdisjoint(item.hosts):
            found.append(item)
        taken |= item.hosts
    return found


def run_all(items: t.Sequence[Item], one: t.Callable[[Item], Answer], parallel: int,
            stop: threading.Event) -> list[Answer]:
    """In the order of ``items``. An exception here (a signal) ends all that runs before it goes on."""
    answers: dict[str, Answer] = {}
    pending = list(items)
    running: dict[Future[Answer], Item] = {}
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while pending or running:
                busy = [host for item in running.values() for host in item.hosts]
                for item in ready(pending, busy, parallel - len(running)):
                    pending.remove(item)
                    if item.needs and _useless(answers[item.needs]):
                        answers[item.id] = Answer(item)
                    else:
                        running[pool.submit(one, item)] = item
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    answers[running.pop(done).id] = done.result()
        except BaseException:
            stop.set()
            raise
    return [answers[item.id] for item in items]


def _useless(before: Answer) -> bool:
    """A hang costs a time limit for each try."""
    verdict = before.report.verdict if before.report else None
    return verdict is None or verdict.state == "HANG"


# -- work -------------------------------------------------------------------------------------------------


@dataclass
class Batch:
    """``pool``: the job of all hosts, the head first; what the launches have in common comes from it."""

    pool: launch.Job
    items: t.Sequence[Item]
    store: Store
    machine: Machine
    parallel: int
    # Between two batches nobody may take the run for a dead one.
    keep_seconds: float = 60.0
    grace_seconds: float = 8.0
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def planned(self) -> list[list[str]]:
        """Check mode: what would be run. The programs may come in this same play."""
        self.check()
        try:
            return self.commands()
        except AidcError:
            return [launch.command(item.job, 5) for item in self.items]

    def check(self) -> None:
        found = problems(self.items, self.parallel)
        if found:
            raise AidcError(found)

    def commands(self) -> list[list[str]]:
        """Also makes the names of the programs absolute."""
        programs = {item.job.binary for item in self.items}
        resolved = {name: resolve(dataclasses.replace(self.pool, binary=name), self.machine) for name in programs}
        network = self.pool.network or network_of(self.pool.hosts[0].address, self.machine)
        self.items = [dataclasses.replace(item, job=dataclasses.replace(
            item.job, binary=resolved[item.job.binary][0].binary, launcher=resolved[item.job.binary][0].launcher,
            network=network)) for item in self.items]
        major = max((major for _job, major in resolved.values()), default=5)
        return [launch.command(item.job, major) for item in self.items]

    def run(self) -> tuple[list[list[str]], list[Answer]]:
        refuse_root()
        self.check()
        argvs = self.commands()
        run_id = self.pool.run_id
        record = self.store.record(run_id)
        if record is None or not (self.store.run_dir(run_id) / KEY).exists():
            raise AidcError([Problem(f"run {run_id}", "no key of it on this host", "what run_access state=made makes",
                                     "another run swept it, or it was made elsewhere")])
        for name, text in launch.files(self.pool).items():
            write_atomic(Path(self.pool.file(name)), text, 0o600, 0o700)
        own_directory(Path(self.pool.file("tmp")))
        self._argv = {item.id: argv for item, argv in zip(self.items, argvs)}
        # Each waits for all before it, at worst.
        seconds = sum(item.seconds + END_SECONDS for item in self.items)
        with ending_on_signal(), alive(self.store, record, seconds, self.keep_seconds):
            return argvs, run_all(self.items, self._one, self.parallel, self.stop)

    def _one(self, item: Item) -> Answer:
        job, argv = item.job, self._argv[item.id]
        log = Path(job.file(f"log-{item.id}"))
        write_atomic(Path(job.file(job.host_file)), launch.host_file(job), 0o600, 0o700)
        bounds = Bounds(item.seconds, grace_seconds=self.grace_seconds)
        outcome = start(argv, launch.environment(job, os.environ), job.mark, log, bounds, self.stop)
        left = [] if outcome.exit_code == 0 else self._clear(job, outcome)
        report = judged_run(job, argv, log, item.criteria, outcome)
        state = report.verdict.state if report.verdict else ""
        text = bounded_text(log, LOG_HEAD, LOG_TAIL) if log.exists() and state not in _PLAIN else ""
        for path in (log, Path(job.file(job.host_file))):
            path.unlink(missing_ok=True)
        return Answer(item, report, left, text)

    def _clear(self, job: launch.Job, outcome: Outcome) -> list[str]:
        """Nothing of the run may be at work when the next one starts on these hosts."""
        left = [f"process {one.pid} cannot be ended: {one.command}" for one in outcome.left]
        others = [host for host in job.hosts if host.name != self.pool.hosts[0].name]
        if outcome.not_started or self.stop.is_set():
            return left
        return left + strays.end_on(job, others)
