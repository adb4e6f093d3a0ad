# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The report as one plain document, from a judged log or a stored search: what JSON, JUnit and HTML show.

No clock and no environment: the same input gives the same document. `document_schema` describes it.
"""
from __future__ import annotations

import statistics
import typing as t

from .cause import Cause, Wanted, causes, of_counters, of_search
from .judging import Judgement, verdict_clues
from .model import Conclusion, Outcome, Run
from .plan import Planner

SCHEMA = "aidc.gpu_cluster/gate-report"
VERSION = 1
CASE_FORMAT = 1
# Everything else is no answer: 3.
_EXIT = {"PASS": 0, "SLOW": 2, "FAIL": 2, "WRONG": 2, "CRASH": 2, "HANG": 2}

Plain = t.Mapping[str, t.Any]
Document = dict[str, t.Any]


class CaseError(Exception):
    """A stored search that cannot be read."""


def exit_code(state: str) -> int:
    return _EXIT.get(state, 3)


def _document(subject: str, state: str, reason: str, simulated: bool) -> Document:
    return {
        "schema": SCHEMA, "version": VERSION, "subject": subject, "simulated": simulated,
        "verdict": {"state": state, "label": f"{state} (SIMULATED)" if simulated else state, "reason": reason,
                    "passed": state == "PASS", "exit_code": exit_code(state)},
        "bandwidth": None, "limits": [], "not_judged": [], "reasons": [], "causes": [], "search": None, "heat": None,
        "evidence": {},
    }


def _causes(found: t.Iterable[Cause]) -> list[dict[str, t.Any]]:
    return [cause.to_dict() for cause in found]


# -- a log ----------------------------------------------------------------------------------------------


def of_log(subject: str, done: Judgement) -> Document:
    verdict, stored = done.verdict.to_dict(), done.stored()
    document = _document(subject, verdict["state"], verdict["reason"], verdict["simulated"])
    document["bandwidth"] = {"peak_busbw_gbps": stored["peak_busbw_gbps"], "ratio": verdict["ratio"],
                             "band": verdict["band"], "judged": verdict["limit"] is not None}
    document["limits"] = [{"what": stored["collective"] or "this run", "reason": done.limit_reason,
                           "limit": verdict["limit"]}]
    document["not_judged"] = list(done.not_judged)
    document["reasons"] = verdict["details"]["reasons"]
    document["causes"] = _causes(done.causes)
    document["evidence"] = {"result": stored}
    return document


# -- a search -------------------------------------------------------------------------------------------


def case(planner: Planner, simulated: bool, **more: t.Any) -> dict[str, t.Any]:
    """A search in the form that is stored. ``more``: class, limits, wanted, counters (before, after)."""
    return {"format": CASE_FORMAT, "simulated": simulated, "search": planner.to_dict(), **more}


def of_case(stored: Plain, allow_simulated: bool = False) -> Document:
    if not isinstance(stored, dict) or stored.get("format") != CASE_FORMAT or "search" not in stored:
        raise CaseError(f"got no stored search of format {CASE_FORMAT}")
    search, simulated = stored["search"], bool(stored.get("simulated"))
    runs, conclusion = replay(search)
    plain, wanted = conclusion.to_dict(), Wanted(**stored.get("wanted", {}))
    state, reason = str(conclusion.verdict), conclusion.reason
    if simulated and state == "PASS" and not allow_simulated:
        state, reason = "INVALID", "the search was SIMULATED, and this is no lab"
    document = _document(plain["pool"] or "pool", state, reason, simulated)
    counters = stored.get("counters", {})
    clues = [*of_search(plain), *of_counters(counters.get("before", {}), counters.get("after", {})),
             *verdict_clues(state, reason)]
    document["causes"] = _causes(causes(clues, wanted))
    document["limits"] = list(stored.get("limits", []))
    document["not_judged"] = [f"{one['node']}: {one['what']}" for one in plain["not_tested"]]
    plain["history"] = [{**entry, **_round(entry["round"], runs)} for entry in plain["history"]]
    document["search"] = {**plain, "nodes": [name for name, _leaf in search["nodes"]]}
    document["heat"] = heat(runs, plain, document["search"]["nodes"])
    return document


def replay(search: Plain) -> tuple[list[tuple[Run, Outcome]], Conclusion]:
    """Each run with its outcome: the stored form keeps only the outcomes, in the order they were asked for."""
    planner = Planner.from_dict({**search, "outcomes": []})
    runs: list[tuple[Run, Outcome]] = []
    for run_id, plain in search["outcomes"]:
        run = next((one for one in planner.next_runs() if one.id == run_id), None)
        if run is None:
            raise CaseError(f"got an outcome for run {run_id!r}, which the search did not ask for")
        outcome = Outcome.from_dict(plain)
        runs.append((run, outcome))
        planner.record(run_id, outcome)
    return runs, planner.conclusion()


def _round(number: int, runs: t.Sequence[tuple[Run, Outcome]]) -> dict[str, t.Any]:
    """Median of the round and its lowest run."""
    seen = [(outcome.value, run.nodes) for run, outcome in runs if run.round == number and outcome.value is not None]
    if not seen:
        return {"median": None, "lowest": None, "lowest_nodes": []}
    lowest, nodes = min(seen)
    values = [value for value, _nodes in seen if value is not None]
    return {"median": round(statistics.median(values), 4), "lowest": lowest,
            "lowest_nodes": list(nodes) if len(nodes) <= 3 else []}


# -- node x rail ----------------------------------------------------------------------------------------


def heat(runs: t.Sequence[tuple[Run, Outcome]], conclusion: Plain, nodes: t.Sequence[str]) -> dict[str, t.Any]:
    """The best that a node (and each of its rails) reached with any partner: a low cell was low with all of them."""
    series: dict[tuple[str, str], dict[tuple[str, ...], list[float]]] = {}
    for run, outcome in runs:
        if run.kind in ("node", "pair"):
            for column, value in _columns(run, outcome):
                for node in run.nodes:
                    series.setdefault((node, column), {}).setdefault(run.nodes, []).append(value)
    best = {key: max(statistics.median(values) for values in partners.values()) for key, partners in series.items()}
    rails = sorted({int(column) for _node, column in best if column.isdigit()})
    columns = ["alone", "pair", *map(str, rails)]
    marks = {one["node"]: "suspect" for one in conclusion["suspects"]}
    marks.update({one["node"]: "not tested" for one in conclusion["not_tested"]})
    marks.update(dict.fromkeys(conclusion["bad_nodes"], "convicted"))
    rows = [{"node": node, "mark": marks.get(node, ""), "values": [best.get((node, column)) for column in columns]}
            for node in nodes]
    return {"columns": ["alone", "pairs", *(f"rail {rail}" for rail in rails)], "rows": rows}


def _columns(run: Run, outcome: Outcome) -> t.Iterator[tuple[str, float]]:
    if outcome.value is not None:
        yield "alone" if run.kind == "node" else "pair", outcome.value
    yield from ((str(rail), value) for rail, value in outcome.rails.items())
