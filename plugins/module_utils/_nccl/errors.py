# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The evaluator of `error_rules`: which line means what, and which one came first."""
from __future__ import annotations

import re

from .error_rules import MACHINE_RULES, ErrorRule
from .error_rules_run import RUN_RULES
from .lines import Origin
from .model import Culprit, ErrorLine, Result

ERROR_RULES = MACHINE_RULES + RUN_RULES
MAX_ERRORS = 256
_MAX_TEXT = 600
# What a failure drags behind it: such lines say least.
_CHAIN = frozenset({"test-failure", "srun-exit", "mpi-exit", "mpi-exit-2", "cancelled"})
_CHAIN_LINES = 4
_PATTERNS = {rule.id: re.compile(rule.pattern) for rule in ERROR_RULES if rule.pattern}

_UNKNOWN = ErrorRule("nccl-warn", "", "", "note", "unknown", "", False, "A warning of NCCL that is not in the table.",
                     "Read it.", "facts 2")
_HCA = re.compile(
    r"\bhca (\w[\w.-]{0,62})|on dev (\w[\w.:-]{0,62})|NET/IB ?: ?(mlx5_\w{1,32}|bnxt_re\w{1,32}|irdma\w{1,32})"
)
_PEER = re.compile(r"from peer ([^\s<]{1,255})<|remoteGids? ?([0-9a-fA-F:.]{2,64})")
_TEST_HOST = re.compile(
    r"^\s*(?:\.\. )?(\S{1,255}?)(?:: Test (?:NCCL|CUDA) failure|: Test timeout| pid \d+: Test failure)"
)
_HOSTS = (
    re.compile(r"Could not resolve hostname (\S{1,255}?):"),
    re.compile(r"ssh: connect to host (\S{1,255}) "),
    re.compile(r"srun: error: (\S{1,255}?): tasks? "),
    re.compile(r"on node (\S{1,255}) exited"),
    re.compile(r"ON (\S{1,255}) CANCELLED"),
)
_RANKS = (
    re.compile(r"process rank (\d{1,7}) with PID"),
    re.compile(r": task (\d{1,7}):"),
    re.compile(r"MPI_ABORT was invoked on rank (\d{1,7})"),
)


class ErrorReader:
    """Collects error lines; equal ones beyond the bound are only counted."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._active: tuple[ErrorRule, ...] = ERROR_RULES
        self._kept: dict[tuple[str, str], ErrorLine] = {}

    def prepare(self, text: str) -> None:
        """Drop, for one block of lines, the rules whose needle is nowhere in it."""
        self._active = tuple(rule for rule in ERROR_RULES if rule.needle in text)

    def plain(self, text: str, rank: int | None = None) -> bool:
        """A line that neither NCCL's logger nor the table wrote."""
        if not self._active:
            return False
        rule = self._rule(text)
        if rule is None:
            return False
        host = _TEST_HOST.match(text)
        self._keep(rule, text, host[1] if host else _first(_HOSTS, text), rank, None, "")
        return True

    def nccl(self, origin: Origin, level: str, message: str, line: str) -> None:
        """A line of NCCL's logger. INFO lines count only if a rule knows them."""
        if level != "WARN" and not self._active:
            return
        rule = self._rule(line)
        if rule is None:
            if level != "WARN":
                return
            rule = _UNKNOWN
        self._keep(rule, message, origin.host, origin.rank, origin.device, origin.time)

    def _rule(self, text: str) -> ErrorRule | None:
        for rule in self._active:
            if rule.needle in text:
                pattern = _PATTERNS.get(rule.id)
                if pattern is None or pattern.search(text):
                    return rule
        return None

    def _keep(self, rule: ErrorRule, text: str, host: str, rank: int | None, device: int | None, time: str) -> None:
        result = self._result
        result.error_count += 1
        # Each unknown warning counts by itself; of a known kind the first of each host is enough.
        key = (text[:80] if rule is _UNKNOWN else rule.id, host)
        known = self._kept.get(key)
        if known is not None:
            known.count += 1
            return
        if len(result.errors) >= MAX_ERRORS:
            return
        hca, peer = _HCA.search(text), _PEER.search(text)
        if rank is None:
            found = _first(_RANKS, text)
            rank = int(found) if found else None
        error = ErrorLine(
            rule.id, text.strip()[:_MAX_TEXT], result.lines, rule.role, rule.category, rule.state, rule.meaning,
            rule.action, rule.source, rule.always, host, rank, device,
            next(filter(None, hca.groups())) if hca else "", next(filter(None, peer.groups())) if peer else "", time,
        )
        self._kept[key] = error
        result.errors.append(error)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> str:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return match[1]
    return ""


def first_error(errors: list[ErrorLine]) -> ErrorLine | None:
    """The one to look at: the first cause, else the first unknown warning, wrapper, follower."""
    order = {"cause": 0, "note": 1, "wrapper": 2, "follower": 3}
    serious = [error for error in errors if error.state or error.id == _UNKNOWN.id]
    return min(serious, key=lambda error: (error.id in _CHAIN, order[error.role], error.line), default=None)


def culprit_of(error: ErrorLine, errors: list[ErrorLine]) -> Culprit:
    """Where it was seen. A line of stderr has no host; the call chain that follows it names one."""
    host = error.host or next(
        (later.host for later in errors if later.host and 0 < later.line - error.line <= _CHAIN_LINES), "")
    return Culprit(host, error.rank, error.device, error.hca, error.peer, error.text)
