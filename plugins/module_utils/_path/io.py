# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""Ask all paths of a host at once."""
from __future__ import annotations

import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._host.errors import AidcError, Problem
from .._host.machine import Machine
from .._host.runner import Result
from .model import Answer, Target, reason_of, smaller_sizes

WORKERS = 32


class Prober:
    def __init__(self, machine: Machine, wait_seconds: int, attempts: int) -> None:
        self.machine, self.wait_seconds, self.attempts = machine, wait_seconds, attempts

    def ask(self, target: Target, size_bytes: int) -> Result:
        """One packet; another one if it was lost without a word. The first may wait for ARP."""
        argv = target.argv(size_bytes, self.wait_seconds)
        done = self.machine.run(argv, self.wait_seconds + 5.0)
        for _attempt in range(self.attempts - 1):
            if done.state != "failed" or reason_of(done.stdout + done.stderr):
                break
            done = self.machine.run(argv, self.wait_seconds + 5.0)
        return done

    def ask_all(self, pairs: t.Sequence[tuple[Target, int]]) -> list[Result]:
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            return list(pool.map(lambda pair: self.ask(*pair), pairs))


def _unusable(done: Result) -> bool:
    """Whether the tool itself failed, which says nothing about the path."""
    words = done.stderr.lower()
    return done.state == "missing" or "usage:" in words or "cap_net_raw" in words or "socket: operation" in words


def probe(targets: t.Sequence[Target], machine: Machine, wait_seconds: int = 1, attempts: int = 2) -> list[Answer]:
    """Whether each path carries its size; for those that do not, the largest usual size that passes."""
    prober = Prober(machine, wait_seconds, attempts)
    first = prober.ask_all([(target, target.size_bytes) for target in targets])
    unusable = next(filter(_unusable, first), None)
    if unusable is not None:
        raise AidcError([Problem("ping", unusable.why(), "ping of iputils, and leave to use it",
                                 "install iputils-ping (Debian) or iputils; run as root if ping has no capability")])
    failed = [(target, done) for target, done in zip(targets, first) if done.state != "ok"]
    pairs = [(target, size) for target, _done in failed for size in smaller_sizes(target.size_bytes)]
    passed: dict[Target, list[int]] = {}
    for (target, size), done in zip(pairs, prober.ask_all(pairs)):
        if done.state == "ok":
            passed.setdefault(target, []).append(size)
    reasons = {target: reason_of(done.stdout + done.stderr) for target, done in failed}
    return [
        Answer(target, target not in reasons, max(passed.get(target, [0])) if target in reasons else target.size_bytes,
               reasons.get(target, ""))
        for target in targets
    ]
