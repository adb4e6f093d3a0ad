# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stored fault case (GB200, one rail at half rate, found by the planner; SIMULATED) through all three reports."""
from __future__ import annotations

import copy
import importlib
import json
import typing as t
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plugins.module_utils._gate import html, junit
from plugins.module_utils._gate.document import CaseError, exit_code, of_case, of_log
from plugins.module_utils._gate.document_schema import REPORT_SCHEMA
from plugins.module_utils._gate.judging import Ask, judge_stream
from tests.unit.plugins.module_utils._gate.fabric import Fabric

FIXTURES = Path(__file__).parent / "fixtures"
LOGS = Path(__file__).parents[1] / "_nccl" / "fixtures"
CASE = json.loads((FIXTURES / "gb200-slow-rail.json").read_text(encoding="utf-8"))
HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J\x00"


def valid(document: t.Any) -> None:
    importlib.import_module("jsonschema").Draft202012Validator(REPORT_SCHEMA).validate(
        json.loads(json.dumps(document, allow_nan=False)))


def hostile() -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", json.loads(json.dumps(CASE).replace(
        "gb200-03", json.dumps(HOSTILE)[1:-1])))


def test_the_stored_case_names_node_and_rail() -> None:
    document = of_case(CASE)
    valid(document)
    assert document["verdict"]["label"] == "FAIL (SIMULATED)" and document["verdict"]["exit_code"] == 2
    assert document["search"]["bad_nodes"] == ["gb200-03"] and document["search"]["convicted"][0]["rails"] == (2,)
    # out_of_sequence grew as well, and is legal where the class has adaptive routing.
    assert [cause["id"] for cause in document["causes"]] == ["link-symbols", "rail"]
    rows = {row["node"]: row for row in document["heat"]["rows"]}
    assert document["heat"]["columns"] == ["alone", "pairs", "rail 0", "rail 1", "rail 2", "rail 3"]
    assert rows["gb200-03"]["mark"] == "convicted" and rows["gb200-03"]["values"][4] == pytest.approx(0.485)
    assert all(value > 0.9 for name, row in rows.items() if name != "gb200-03" for value in row["values"] if value)
    assert sum(entry["runs"] for entry in document["search"]["history"]) == len(CASE["search"]["outcomes"])


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.iterdir()))
def test_the_schema_holds_for_every_log(name: str) -> None:
    with open(LOGS / name, "rb") as stream:
        document = of_log(name, judge_stream(stream, Ask()))
    valid(document)
    assert document["verdict"]["passed"] is False
    html.render(document)
    ElementTree.fromstring(junit.render(document))


def test_the_schema_refuses_what_is_no_report() -> None:
    document = of_case(CASE)
    for change in ({"version": 2}, {"verdict": {"state": "GOOD"}}, {"more": 1}, {"causes": [{"id": "x"}]}):
        with pytest.raises(Exception, match="."):
            valid({**document, **change})


def test_golden_page_and_junit() -> None:
    """After a change that is meant: write the new text there and look at the page."""
    document = of_case(CASE)
    assert html.render(document) == (FIXTURES / "gb200-slow-rail.html").read_text(encoding="utf-8")
    assert junit.render(document) == (FIXTURES / "gb200-slow-rail.xml").read_text(encoding="utf-8")
    assert html.render(of_case(copy.deepcopy(CASE))) == html.render(document)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [name for name, _value in attrs if name in ("src", "href", "onload", "onclick")]


def test_hostile_names_stay_text() -> None:
    document = of_case(hostile())
    assert document["search"]["bad_nodes"] == [HOSTILE]
    page = html.render(document)
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen and tags.links == [] and "&lt;script&gt;" in page
    assert "\x1b" not in page and "\x00" not in page and "http" not in page.replace("http-equiv", "")
    names = [case.get("name") for case in ElementTree.fromstring(junit.render(document)).iter("testcase")]
    assert "<script>alert(1)</script>\"'&\ufffd[2J\ufffd" in names


def test_simulated_is_shown_first_and_never_passes_unasked() -> None:
    planner = Fabric(4).planner()
    Fabric(4).finish(planner)
    stored = {"format": 1, "simulated": True, "search": planner.to_dict()}
    document = of_case(stored)
    assert document["verdict"]["label"] == "INVALID (SIMULATED)" and document["verdict"]["exit_code"] == 3
    allowed = of_case(stored, allow_simulated=True)
    assert allowed["verdict"]["label"] == "PASS (SIMULATED)" and allowed["verdict"]["exit_code"] == 0
    assert html.render(allowed).index('class="sim"') < html.render(allowed).index("<h1>")
    assert all("(SIMULATED)" in str(case.get("classname"))
               for case in ElementTree.fromstring(junit.render(allowed)).iter("testcase"))
    assert of_case({**stored, "simulated": False})["verdict"]["label"] == "PASS"
    assert 'class="sim"' not in html.render(of_case({**stored, "simulated": False}))


def test_junit_has_no_passed_case_for_what_was_not_proven() -> None:
    planner = Fabric(4).planner()
    document = of_case({"format": 1, "search": planner.to_dict()})
    valid(document)
    suite = ElementTree.fromstring(junit.render(document))[0]
    assert document["verdict"]["state"] == "INCOMPLETE" and all(len(case) for case in suite)
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("5", "1", "4")


def test_exit_codes_and_what_is_no_case() -> None:
    assert [exit_code(state) for state in ("PASS", "SLOW", "WRONG", "LAUNCH", "UNVERIFIED", "?")] == [0, 2, 2, 3, 3, 3]
    broken = copy.deepcopy(CASE)
    broken["search"]["outcomes"][0][0] = "999999"
    cases: list[t.Any] = [{}, [], {"format": 2, "search": {}}, broken]
    for stored in cases:
        with pytest.raises(CaseError):
            of_case(stored)
