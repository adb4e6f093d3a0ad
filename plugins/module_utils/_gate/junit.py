# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The report as JUnit XML: the verdict, then a case for each node. What was not tested is never a passed case."""
from __future__ import annotations

import re
import typing as t
from xml.etree import ElementTree

from .document import exit_code
from .report import NOT_TESTED

# XML 1.0 has no way to write these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Document = t.Mapping[str, t.Any]


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def render(document: Document) -> str:
    verdict = document["verdict"]
    # The label stands in each case's class, so a simulated result stays one in every viewer.
    name = _clean(f"gate {document['subject']}" + (" (SIMULATED)" if document["simulated"] else ""))
    cases = [_case(name, "verdict", *_outcome(verdict["exit_code"], verdict["label"], verdict["reason"]))]
    for row in (document["heat"] or {"rows": []})["rows"]:
        cases.append(_case(name, row["node"], *_of_node(row, document)))
    return _suites(name, cases)


def render_pools(records: t.Iterable[Document], searches: t.Mapping[str, Document] | None = None) -> str:
    """The records of the role's pools, a case for each; of a pool that was searched one for each node as well.

    NOT TESTED is skipped, no verdict an error.
    """
    cases = []
    for record in records:
        name = "gate (SIMULATED)" if record["simulated"] else "gate"
        code = 0 if record["passed"] else exit_code(record["state"])
        outcome = ("skipped", record["label"]) if record["state"] == NOT_TESTED \
            else _outcome(code, record["label"], record["reason"])
        cases.append(_case(name, record["pool"], *outcome))
        found = (searches or {}).get(record["pool"])
        if found:
            cases += [_case(f"{name} {record['pool']}", row["node"], *_of_node(row, found))
                      for row in found["heat"]["rows"]]
    return _suites("gate", cases)


def _suites(name: str, cases: t.Sequence[ElementTree.Element]) -> str:
    counts = {f"{tag}s" if tag != "skipped" else tag: str(sum(case.find(tag) is not None for case in cases))
              for tag in ("failure", "error", "skipped")}
    suite = ElementTree.Element("testsuite", {"name": name, "tests": str(len(cases)), **counts})
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _outcome(code: int, label: str, reason: str) -> tuple[str, str]:
    return {0: "", 2: "failure"}.get(code, "error"), f"{label}: {reason}"


def _of_node(row: Document, document: Document) -> tuple[str, str]:
    texts = [one["text"] for one in document["search"]["convicted"] if row["node"] in one["nodes"]]
    if row["mark"] == "convicted":
        return "failure", "; ".join(texts) or "convicted"
    if row["mark"]:
        return "error", row["mark"]
    # A sound node in a pool that did not pass was cleared, but the pool was not proven.
    return ("", "") if document["verdict"]["exit_code"] != 3 else ("skipped", "the pool has no verdict")


def _case(suite: str, name: str, tag: str, text: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": suite, "name": _clean(name)})
    if tag:
        ElementTree.SubElement(case, tag, {"message": _clean(text)})
    return case
