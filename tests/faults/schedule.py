# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rows run when and where: in a round each host has one fault or one twin at most. Pure."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.faults.places import Host, Place, candidates
from tests.faults.rows import Pair, Row

Phase = Literal["fault", "twin"]


@dataclass(frozen=True)
class Job:
    """A row's fault or twin on its place, or two faults at once on one host."""

    name: str
    phase: Phase
    rows: tuple[Row, ...]
    places: tuple[Place, ...]

    @property
    def hosts(self) -> set[str]:
        return {host.name for place in self.places for host in (place.host, place.peer) if host is not None}

    @property
    def runs(self) -> set[str]:
        return {detector.run for row in self.rows
                for detector in (row.detect if self.phase == "fault" else row.twin_detect)}

    @property
    def alone(self) -> bool:
        return any(row.alone for row in self.rows)

    @property
    def slow(self) -> bool:
        """A reboot: put with others of its kind, as a round takes as long as its longest job."""
        halves = [row.fault if self.phase == "fault" else row.twin for row in self.rows]
        return any(kind in ("reboot", "driver", "play") for half in halves for step in (*half.set, *half.undo)
                   for kind in step)


class NoHost(ValueError):
    """The lab has no host for a row."""


def _choose(hosts: Mapping[str, Host], rows: tuple[Row, ...], load: Counter[str]) -> tuple[Host, Host | None]:
    """The host with the least to do among those that fit."""
    found = [pair for pair in candidates(hosts, rows[0])
             if all(pair[0].fits(row.where) and row.rail < len(pair[0].rails) for row in rows)]
    if not found:
        raise NoHost(f"{', '.join(row.name for row in rows)}: no host of the lab fits")
    host, peer = min(found, key=lambda pair: load[pair[0].name] + (load[pair[1].name] if pair[1] else 0))
    return host, peer


def jobs(rows: Iterable[Row], pairs: Iterable[Pair], hosts: Mapping[str, Host]) -> list[Job]:
    load: Counter[str] = Counter()
    made: list[Job] = []
    # Rows that can run on few hosts choose first.
    for row in sorted(rows, key=lambda one: len(candidates(hosts, one))):
        host, peer = _choose(hosts, (row,), load)
        place = Place(host, host.rails[row.rail], peer)
        made += [Job(row.name, "fault", (row,), (place,)), Job(row.name, "twin", (row,), (place,))]
        load.update({name: 2 for name in made[-1].hosts})
    for pair in pairs:
        host, peer = _choose(hosts, pair.rows, load)
        places = tuple(Place(host, host.rails[row.rail], peer) for row in pair.rows)
        made.append(Job(pair.name, "fault", pair.rows, places))
        load.update(made[-1].hosts)
    return made


def rounds(waiting: list[Job]) -> list[list[Job]]:
    """Greedy: slow ones together, and those that the same detectors find, as each detector is a play of its own.

    A job that reaches beyond its hosts has a round of its own.
    """
    left = sorted(waiting, key=lambda job: (job.alone, not job.slow))
    found: list[list[Job]] = []
    while left:
        chosen = [left.pop(0)]
        while not chosen[0].alone:
            busy = {host for job in chosen for host in job.hosts}
            asked = {run for job in chosen for run in job.runs}
            fit = [job for job in left if not job.alone and job.slow == chosen[0].slow and not job.hosts & busy]
            if not fit:
                break
            best = min(fit, key=lambda job: len(job.runs - asked))
            chosen.append(best)
            left.remove(best)
        found.append(chosen)
    return found
