# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE: for this collection only; it may change in any release.
"""From what each host brought back to one record per pool, a table, and what fails the play. Pure.

A pool passes only by a verdict PASS of its one run. Every other way to end has its stage: `hosts` (somebody is
missing), `rails`, `access`, `path`, `run`. NOT TESTED is no pass, but fails nothing.
"""
from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from . import pool as pools

SCHEMA_VERSION = 1
NOT_TESTED = "NOT TESTED"
TITLES = ("POOL", "HOSTS", "VERDICT", "BUSBW-GB/s", "WANTED", "OF-LIMIT")
MAX_NAMED = 6


@dataclass(frozen=True)
class HostFacts:
    """What one host brought back; an empty mapping is a step that did not run."""

    member: t.Mapping[str, t.Any] = field(default_factory=dict)
    made: t.Mapping[str, t.Any] = field(default_factory=dict)
    access: t.Mapping[str, t.Any] = field(default_factory=dict)
    paths: t.Mapping[str, t.Any] = field(default_factory=dict)
    test: t.Mapping[str, t.Any] = field(default_factory=dict)
    cleanup: t.Mapping[str, t.Any] = field(default_factory=dict)
    search: t.Mapping[str, t.Any] = field(default_factory=dict)


Hosts = t.Mapping[str, HostFacts]


@dataclass(frozen=True)
class Outcome:
    state: str
    stage: str
    reason: str
    label: str = ""


def _names(names: t.Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _said(result: t.Mapping[str, t.Any]) -> str:
    return " ".join(str(result.get("msg") or "no result").split())[:400]


def _bad(result: t.Mapping[str, t.Any]) -> bool:
    return bool(result.get("failed") or result.get("unreachable"))


def path_findings(names: t.Sequence[str], hosts: Hosts) -> list[str]:
    """Each path that is too small, with both ends; the way back is named only if it carries another size."""
    found, seen = [], set()
    for name in names:
        for path in hosts[name].paths.get("paths", []):
            if path["passed"]:
                continue
            largest = path["largest_bytes"]
            key = (path["rail"], frozenset((name, path["peer"])), largest)
            if key in seen:
                continue
            seen.add(key)
            passed = f"the largest that passed is {largest}" if largest else "nothing passed"
            reason = f" ({path['reason']})" if path["reason"] else ""
            found.append(f"rail {path['rail']}: {name} {path['interface']} {path['source']} -> {path['peer']} "
                         f"{path['peer_interface']} {path['address']}: wanted {path['size_bytes']} bytes, "
                         f"{passed}{reason}")
    return found


# -- the stages, in the order in which they can go wrong ------------------------------------------------


def _not_asked(names: t.Sequence[str], hosts: Hosts, check_mode: bool) -> Outcome | None:
    reason = next((hosts[name].member["not_tested"] for name in names
                   if name in hosts and hosts[name].member.get("not_tested")), "")
    if not reason and len(names) == 1 and names[0] in hosts:
        reason = "one host: network not tested"
    if not reason and check_mode:
        reason = "check mode"
    return Outcome(NOT_TESTED, "", reason, f"{NOT_TESTED} ({reason})") if reason else None


def _hosts(names: t.Sequence[str], hosts: Hosts) -> Outcome | None:
    absent = [name for name in names if name not in hosts or not hosts[name].member]
    if absent:
        return Outcome("INCOMPLETE", "hosts", f"not in this run: {_names(absent)} (left out by --limit, unreachable, "
                                              "or failed before)")
    dead = [name for name in names for result in (hosts[name].access, hosts[name].paths) if result.get("unreachable")]
    if dead:
        return Outcome("INCOMPLETE", "hosts", f"unreachable: {_names(list(dict.fromkeys(dead)))}")
    return None


def _rails(names: t.Sequence[str], hosts: Hosts) -> Outcome | None:
    found = pools.problems(names, {name: hosts[name].member for name in names})
    return Outcome("INVALID", "rails", "; ".join(found[:MAX_NAMED])) if found else None


def _access(names: t.Sequence[str], hosts: Hosts) -> Outcome | None:
    made = hosts[names[0]].made
    if not made.get("public_key"):
        return Outcome("LAUNCH", "access", f"{names[0]}: {_said(made)}")
    bad = [name for name in names if _bad(hosts[name].access) or not hosts[name].access.get("host_keys")]
    if bad:
        said = [f"{name}: {_said(hosts[name].access)}" for name in bad[:MAX_NAMED]]
        return Outcome("LAUNCH", "access", "; ".join(said))
    return None


def _path(names: t.Sequence[str], hosts: Hosts) -> Outcome | None:
    found = path_findings(names, hosts)
    if found:
        more = f"; {len(found) - 2} more in the report" if len(found) > 2 else ""
        return Outcome("PATH", "path", "; ".join(found[:2]) + more)
    unknown = [name for name in names if hosts[name].paths.get("too_small") != 0]
    if unknown:
        return Outcome("INVALID", "path", f"{unknown[0]}: {_said(hosts[unknown[0]].paths)}")
    return None


def _run(names: t.Sequence[str], hosts: Hosts) -> Outcome:
    test = hosts[names[0]].test
    verdict = test.get("verdict")
    if _bad(test) or not isinstance(verdict, t.Mapping):
        return Outcome("LAUNCH", "run", f"{names[0]}: {_said(test)}")
    return Outcome(str(verdict["state"]), "run", str(verdict["reason"]), str(verdict["label"]))


def outcome(names: t.Sequence[str], hosts: Hosts, check_mode: bool) -> Outcome:
    stages = (lambda: _not_asked(names, hosts, check_mode), lambda: _hosts(names, hosts),
              lambda: _rails(names, hosts), lambda: _access(names, hosts), lambda: _path(names, hosts))
    for stage in stages:
        found = stage()
        if found is not None:
            return found
    return searched(_run(names, hosts), hosts[names[0]].search)


# -- the search for the culprit -------------------------------------------------------------------------

# A whole run that has passed, and a search that has not.
_OF_SEARCH = {"SLOW": "SLOW", "FAIL": "SLOW", "INCOMPLETE": "INCOMPLETE"}


def searched(found: Outcome, search: t.Mapping[str, t.Any]) -> Outcome:
    """The outcome of the whole run, with what the search adds. A search makes no run pass that has not passed."""
    if _bad(search):
        return dataclasses.replace(found, reason=f"{found.reason}; the search for the culprit failed: {_said(search)}")
    conclusion = search.get("conclusion")
    if not conclusion or (found.state == "PASS" and conclusion["verdict"] == "PASS"):
        return found
    state, label = found.state, found.label
    if state == "PASS":
        state = _OF_SEARCH[conclusion["verdict"]]
        label = label.replace("PASS", state, 1)
    words = [f"culprit {text}" for text in search["culprits"]]
    if not words:
        suspects = ", ".join(one["node"] for one in conclusion["suspects"])
        words = ["no culprit: " + conclusion["reason"] + (f" (suspects: {suspects})" if suspects else "")]
    return Outcome(state, "search", "; ".join([*words, *search.get("notes", [])[:2], found.reason]), label)


# -- the record -----------------------------------------------------------------------------------------


def _left(names: t.Sequence[str], hosts: Hosts) -> list[str]:
    """What the clean-up could not do; it changes no verdict, and must not stay unsaid."""
    found = []
    for name in names:
        cleanup = hosts[name].cleanup if name in hosts else {}
        if _bad(cleanup):
            found.append(f"{name}: not cleaned up: {_said(cleanup)}")
        found += [f"{name}: process {process['pid']} of run {process['run_id']} is still there"
                  for process in cleanup.get("left", [])]
    return found


def record(name: str, hosts: Hosts, time: str, check_mode: bool = False) -> dict[str, t.Any]:
    """The pool's record as it is written to its file."""
    known = [facts.member for facts in hosts.values() if facts.member.get("pool") == name]
    names = list(known[0]["members"]) if known else []
    found = outcome(names, hosts, check_mode) if names else Outcome(
        "INCOMPLETE", "hosts", "no host of the pool was reached")
    test = hosts[names[0]].test if names and names[0] in hosts else {}
    verdict = test.get("verdict") or {}
    result = test.get("result") or {}
    return {
        "schema_version": SCHEMA_VERSION, "pool": name, "hosts": names, "time": time,
        "run_id": hosts[names[0]].made.get("run_id") if names and names[0] in hosts else None,
        **dataclasses.asdict(found), "label": found.label or found.state,
        "passed": found.state == "PASS" and found.stage == "run",
        "search": _search_of(names, hosts),
        "simulated": bool(verdict.get("simulated") or any(member.get("lab") for member in known)),
        "peak_busbw_gbps": result.get("peak_busbw_gbps"), "limit": verdict.get("limit"), "ratio": verdict.get("ratio"),
        "path_findings": path_findings([name for name in names if name in hosts], hosts),
        "left_behind": _left(names, hosts),
        "verdict": verdict or None, "result": result or None, "command": test.get("command"),
        "evidence": test.get("evidence"), "log_path": test.get("log_path"),
    }


def _search_of(names: t.Sequence[str], hosts: Hosts) -> dict[str, t.Any] | None:
    search = hosts[names[0]].search if names and names[0] in hosts else {}
    if not search.get("conclusion"):
        return None
    return {key: search.get(key) for key in ("conclusion", "culprits", "notes", "resumed", "launches")}


def failed(record: t.Mapping[str, t.Any]) -> bool:
    return not record["passed"] and record["state"] != NOT_TESTED


def message(record: t.Mapping[str, t.Any]) -> str:
    """What the operator reads when the pool fails the play."""
    stage = f" at stage {record['stage']}" if record["stage"] else ""
    return f"pool {record['pool']}: {record['label']}{stage}: {record['reason']}"


# -- the table ------------------------------------------------------------------------------------------


def _number(value: t.Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "-"


def _row(record: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    limit = record.get("limit") or {}
    wanted = limit.get("busbw_gbps")
    needed = f"{_number(wanted * limit.get('pass_fraction', 1))}" if isinstance(wanted, (int, float)) else "-"
    ratio = f"{record['ratio']:.1%}" if isinstance(record.get("ratio"), float) else "-"
    peak = _number(record.get("peak_busbw_gbps"))
    return (record["pool"], str(len(record["hosts"])), record["label"], peak, needed, ratio)


def table(records: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """One short line for each pool (the default callback breaks long ones), why it failed, what was left behind."""
    rows = [TITLES, *(_row(record) for record in records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    why = [message(record) for record in records if failed(record)]
    return lines + why + [text for record in records for text in record.get("left_behind", [])]
