# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""The reason of a drained node: whose it is, what Slurm has added, what a registration lacked. Pure.

Our reasons are ``aidc:SOURCE: text`` or ``aidc:SOURCE:RUN_ID: text``. slurmctld adds what it has to say after `` : ``
[SchedMD slurm-24.11 node_mgr.c, set_node_reason], and it gives a node a reason of its own only where none stands or
that is "Not responding" [_drain_node]. From 24.11 on a registration with too little replaces any reason [node_mgr.c,
validate_node_specs]; in 22.05 the old one stays [driver-slurm-k8s 3.6].
"""
from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .._host.errors import Problem

PREFIX = "aidc:"
JOINT = " : "
# A word of [0-9A-Za-z._-]; a run id may also be a time with colons left out.
_WORD = r"[0-9A-Za-z][0-9A-Za-z._-]*"
_OURS = re.compile(rf"aidc:(?P<source>{_WORD})(?::(?P<run>{_WORD}))?: (?P<text>.*)", re.DOTALL)
WORD = re.compile(_WORD)
Kind = t.Literal["none", "ours", "foreign"]
What = t.Literal["reboot", "response", "registration", "failure", "other"]

# How a reason of slurmctld begins, and what it is about [driver-slurm-k8s 3.6; slurm-24.11 node_mgr.c, gres.c].
_SLURM: tuple[tuple[str, What], ...] = (
    (r"reboot (requested|issued|complete|timed out)", "reboot"),
    (r"Node unexpectedly rebooted", "failure"),
    (r"Not responding", "response"),
    (r"\S+ count reported lower than configured", "registration"),
    (r"\S+:\S+ count too low", "registration"),
    (r"\S+ count too low", "registration"),
    (r"Low (RealMemory|socket\*core\*thread count|CPUs|TmpDisk)", "registration"),
    (r"CoreSpec differ|Could not unpack gres data|RestrictedCoresPerGPU|Reported active features", "registration"),
    (r"\S+ count changed and jobs are using them", "failure"),
    (r"Prolog error|Epilog error|Kill task failed|batch job complete failure|Duplicate jobid", "failure"),
    (r"Powered down after resume|Set to State=FUTURE|ResumeTimeout reached", "response"),
)
_SLURM_RULES = tuple((re.compile(pattern), what) for pattern, what in _SLURM)

# What a registration lacked: (pattern, field, got, wanted) with the groups of the pattern.
_REGISTRATION: tuple[tuple[t.Pattern[str], str, str, str], ...] = (
    (re.compile(r"(\S+?) count (?:reported lower than configured|too low) \((\d+) < (\d+)\)"), r"\1", r"\2", r"\3"),
    (re.compile(r"Low RealMemory \(reported:(\d+) < ([\d.]+)% of configured:(\d+)\)"), "RealMemory", r"\1 MiB",
     r"at least \2 % of \3 MiB"),
    (re.compile(r"Low RealMemory(?! \()"), "RealMemory", "less than configured", "RealMemory of slurm.conf"),
    (re.compile(r"Low socket\*core\*thread count"), "Sockets*CoresPerSocket*ThreadsPerCore", "less than configured",
     "the product in slurm.conf"),
    (re.compile(r"Low CPUs"), "CPUs", "less than configured", "CPUs of slurm.conf"),
    (re.compile(r"Low TmpDisk"), "TmpDisk", "less than configured", "TmpDisk of slurm.conf"),
    (re.compile(r"CoreSpec differ"), "CoreSpecCount", "another value", "that of slurm.conf"),
)


@dataclass(frozen=True)
class Reason:
    """``base`` is the reason as it was set, ``appended`` what Slurm (or somebody) has added to it."""

    raw: str = ""
    kind: Kind = "none"
    source: str = ""
    run_id: str = ""
    text: str = ""
    base: str = ""
    appended: tuple[str, ...] = ()

    def is_of(self, source: str, run_id: str | None = None) -> bool:
        """Whether it is ours and of that source; of that run, where one is given."""
        return self.kind == "ours" and self.source == source and (not run_id or run_id == self.run_id)


def what_of(text: str) -> What:
    """What a reason of slurmctld is about; ``other`` for what it does not say by itself."""
    return next((what for rule, what in _SLURM_RULES if rule.match(text)), "other")


def parse(raw: str | None) -> Reason:
    text = (raw or "").strip()
    # What Slurm's tools print where there is no reason.
    if not text or text.lower() in ("none", "(null)"):
        return Reason()
    base, *appended = text.split(JOINT)
    found = _OURS.fullmatch(base)
    if found is None:
        # Somebody's own text may hold the joint; a token that is not at the front is no token.
        return Reason(text, "foreign", base=base, appended=tuple(appended))
    return Reason(text, "ours", found["source"], found["run"] or "", found["text"], base, tuple(appended))


def problems_of(source: str, run_id: str | None, text: str) -> list[Problem]:
    """Why these parts make no reason that can be read back."""
    found = [Problem(name, repr(value), "letters, digits, dot, dash and underscore", "it is a part of the token")
             for name, value in (("source", source), ("run_id", run_id or "")) if value and not WORD.fullmatch(value)]
    if not source:
        found.append(Problem("source", "nothing", "a word such as gate", "it says who may resume the node"))
    if not text.strip():
        found.append(Problem("reason", "nothing", "a text", "Slurm refuses to drain without a reason"))
    if JOINT in text or not text.isprintable():
        found.append(Problem("reason", repr(text), "one printable line without ' : '",
                             "slurmctld puts ' : ' before what it adds"))
    return found


def format_reason(source: str, run_id: str | None, text: str) -> str:
    run = f":{run_id}" if run_id else ""
    return f"{PREFIX}{source}{run}: {' '.join(text.split())}"


def blocking(reason: Reason, invalid: bool) -> list[str]:
    """What was added that is not settled: a reboot and a lost answer are over when the node answers again, a
    registration when INVALID_REG is gone, anything else only when somebody has looked at it."""
    settled: set[What] = {"reboot", "response"} if invalid else {"reboot", "response", "registration"}
    return [text for text in reason.appended if what_of(text) not in settled]


def registration(raw: str) -> list[dict[str, str]]:
    """Field, got and wanted of each thing that a reason says a registration lacked."""
    found = []
    for pattern, *parts in _REGISTRATION:
        for match in pattern.finditer(raw):
            field, got, wanted = (match.expand(part) for part in parts)
            found.append({"field": field, "got": got, "wanted": wanted})
    return found
