# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""JSON Schema (draft 2020-12) of the gate's report: data only, and its documentation."""
from __future__ import annotations

import typing as t


def _object(description: str, **properties: t.Any) -> dict[str, t.Any]:
    return {"type": "object", "description": description, "properties": properties, "required": list(properties)}


def _list(items: t.Any) -> dict[str, t.Any]:
    return {"type": "array", "items": items}


_TEXT, _NUMBER, _BOOL = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_RATIO = {"type": ["number", "null"], "description": "Share of the limit; null: not measured."}

_LIMIT = {
    "type": ["object", "null"], "required": ["busbw_gbps", "rule", "inputs", "pass_fraction"],
    "description": "GB/s (1e9 bytes/s), the rule that gave the number and every input of it.",
    "properties": {"busbw_gbps": _NUMBER, "rule": _TEXT, "inputs": {"type": "object"}, "pass_fraction": _NUMBER,
                   "fail_fraction": _NUMBER, "upper_bound": {"type": ["number", "null"]}},
}
_CAUSE = _object(
    "A likely cause and what to do.", id=_TEXT, strength={"enum": ["certain", "likely", "hint"]}, cause=_TEXT,
    action=_TEXT, source=_TEXT, places=_list(_object("Where", node=_TEXT, device=_TEXT)), evidence=_list(_TEXT),
    clues={"type": "integer"},
)
_ROUND = _object(
    "One round of the search.", round={"type": "integer"}, stage=_TEXT, text=_TEXT, batches={"type": "integer"},
    runs={"type": "integer"}, median=_RATIO, lowest=_RATIO, lowest_nodes=_list(_TEXT),
)
_CONVICTED = _object(
    "A node, a rail of a node, or a path between sound nodes.", kind={"enum": ["node", "rail", "path"]},
    nodes=_list(_TEXT), symptom=_TEXT, rails=_list({"type": "integer"}), text=_TEXT,
)

REPORT_SCHEMA: dict[str, t.Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        "Report of the gate on one log or one pool.",
        schema={"const": "aidc.gpu_cluster/gate-report"},
        version={"const": 1},
        subject={"type": "string", "description": "The log's name, or the pool's."},
        simulated={"type": "boolean", "description": "From the lab or a simulation: says nothing about hardware."},
        verdict=_object(
            "PASS, or why not.",
            state={"enum": ["PASS", "SLOW", "FAIL", "WRONG", "CRASH", "HANG", "LAUNCH", "UNVERIFIED", "INVALID",
                            "INCOMPLETE"]},
            label=_TEXT, reason=_TEXT, passed=_BOOL, exit_code={"enum": [0, 2, 3]},
        ),
        bandwidth={"type": ["object", "null"], "description": "Of a log: its peak against the limit.",
                   "required": ["peak_busbw_gbps", "ratio", "band", "judged"],
                   "properties": {"peak_busbw_gbps": {"type": ["number", "string", "null"]}, "ratio": _RATIO,
                                  "band": _TEXT, "judged": _BOOL}},
        limits=_list(_object("One limit.", what=_TEXT, reason=_TEXT, limit=_LIMIT)),
        not_judged={**_list(_TEXT), "description": "What the verdict says nothing about."},
        reasons=_list(_object("All that spoke against a pass.", state=_TEXT, id=_TEXT, text=_TEXT)),
        causes=_list(_CAUSE),
        search={"type": ["object", "null"], "description": "Of a pool: how the culprit was looked for.",
                "required": ["history", "convicted", "suspects", "nodes", "bad_nodes", "seed", "verified"],
                "properties": {"history": _list(_ROUND), "convicted": _list(_CONVICTED), "nodes": _list(_TEXT),
                               "bad_nodes": _list(_TEXT), "verified": _BOOL, "seed": {"type": "integer"}}},
        heat={"type": ["object", "null"], "description": "Best share of the limit by node and rail.",
              "required": ["columns", "rows"],
              "properties": {"columns": _list(_TEXT), "rows": _list(_object(
                  "One node.", node=_TEXT, mark=_TEXT, values=_list(_RATIO)))}},
        evidence={"type": "object", "description": "Of a log: what was parsed."},
    ),
    "additionalProperties": False,
}
