# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex import parse
from ansible_collections.aidc.gpu_cluster.plugins.module_utils._imex.model import (
    CONNECTED,
    MAP_MISMATCH,
    VERSION_MISMATCH,
    Domain,
    Member,
    Unit,
)

CONFIG = "# KEY=1 in a comment\nKEY=2\n  KEY=3\nOTHER = x\n#KEY=4\nKEYS=5\n"
TABLE = """\
Connectivity Table Legend:
I - Invalid - Node wasn't reachable, no connection status available
C - Connected - Ready for operation

5/4/2026 06:08:10.580
Nodes:
Node #0   * 192.0.2.1 *         - READY                - Version: 580.126.09      - Hostname: tray01
Node #1   - 192.0.2.2           - READY                - Version: 570.172         - Hostname: tray02
Node #11  - 192.0.2.3           - UNAVAILABLE          - Version:                 - Hostname: tray03

 Nodes From\\To  0   1   11
       0        C   !V! N
       1        !M! C   Q
      11        I   I   I

Domain State: DEGRADED
"""


def test_keys_stand_at_the_beginning_of_a_line() -> None:
    assert parse.keys(CONFIG, ["KEY", "OTHER", "NONE"]) == {"KEY": "2", "OTHER": "x", "NONE": None}
    assert parse.keys("KEY=1\nKEY=\n", ["KEY"]) == {"KEY": ""}


@pytest.mark.parametrize(("text", "wanted", "merged"), [
    (CONFIG, {"KEY": "2", "OTHER": "x"}, CONFIG), (CONFIG, {"KEY": "9"}, CONFIG.replace("\nKEY=2", "\nKEY=9")),
    (CONFIG, {"NEW": "a b"}, CONFIG + "NEW=a b\n"), ("A=1", {"NEW": "1"}, "A=1\nNEW=1\n"),
    ("", {"NEW": "1"}, "NEW=1\n"),
    ("A=1\nA=2\n", {"A": "2"}, "A=2\nA=2\n"), ("A=\n", {"A": "\\1"}, "A=\\1\n"),
    ("OTHER = x\n", {"OTHER": "y"}, "OTHER=y\n")])
def test_merge(text: str, wanted: dict[str, str], merged: str) -> None:
    assert parse.merge(text, wanted) == merged
    assert parse.merge(merged, wanted) == merged


def test_unit() -> None:
    text = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nInactiveExitTimestampMonotonic=2500000\n"
    assert parse.unit(text) == Unit("loaded", "active", "enabled", 2.5)
    assert parse.unit("LoadState=not-found\nInactiveExitTimestampMonotonic=0\n") == Unit("not-found", "", "", 0)


@pytest.mark.parametrize("text", [
    "", "ActiveState=active\n", "LoadState=loaded\n", "LoadState=loaded\nInactiveExitTimestampMonotonic=x\n"])
def test_no_unit(text: str) -> None:
    with pytest.raises(ValueError, match="no LoadState|no time of its start"):
        parse.unit(text)


def test_daemon_state() -> None:
    assert parse.daemon_state("READY\n") == "READY"
    for text in ("", "READY or not\n", "ready", "Error: no connection\n"):
        with pytest.raises(ValueError, match="no state"):
            parse.daemon_state(text)


def test_table() -> None:
    found = parse.domain_text(TABLE)
    assert found.members == {
        0: Member("192.0.2.1", "READY", "580.126.09", "tray01"), 1: Member("192.0.2.2", "READY", "570.172", "tray02"),
        11: Member("192.0.2.3", "UNAVAILABLE", "", "tray03")}
    assert found.links[0, 0] == CONNECTED and len(found.links) == 9
    assert (found.links[0, 1], found.links[1, 0]) == (VERSION_MISMATCH, MAP_MISMATCH)
    assert found.links[0, 11] == "never connected" and found.links[1, 11] == "Q"
    assert found.state == "DEGRADED" and parse.is_unknown(found)


def test_a_table_of_an_older_build() -> None:
    text = "Nodes:\nNode #0   - 10.0.0.48       - READY\n\n Nodes From\\To  0\n       0        C\nDomain State: UP\n"
    assert parse.domain_text(text) == Domain({0: Member("10.0.0.48", "READY")}, {(0, 0): CONNECTED}, "UP")


@pytest.mark.parametrize(("text", "message"), [
    ("", "no line Node #"), ("Node #0 - a - READY\n", "no line Domain State"),
    ("Domain State: UP\n", "no line Node #")])
def test_no_table(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse.domain_text(text)


def node(status: str, links: dict[str, str], **more: t.Any) -> dict[str, t.Any]:
    return {"status": status, "host": "a", "connections": {key: {"host": "b", "status": word}
                                                           for key, word in links.items()}, **more}


def test_json_has_three_kinds_of_status() -> None:
    found = parse.domain_json(json.dumps({"status": "DOWN", "nodes": {
        "0": node("READY", {"0": "CONNECTED", "1": "NEVER_CONNECTED"}, version="580.30", hostName="g1"),
        "1": node("UNAVAILABLE", {"0": "INVALID"})}}))
    assert found == Domain({0: Member("a", "READY", "580.30", "g1"), 1: Member("a", "UNAVAILABLE")},
                           {(0, 0): CONNECTED, (0, 1): "never connected",
                            (1, 0): "invalid, the node was not reachable"}, "DOWN")
    assert not parse.is_unknown(found)
    assert parse.is_unknown(parse.domain_json(json.dumps({"status": "UP", "nodes": {"0": node("READY", {"0": "X"})}})))


@pytest.mark.parametrize("data", [
    [], None, {}, {"nodes": {}, "status": "UP"}, {"nodes": [], "status": "UP"}, {"nodes": {"0": {}}, "status": "UP"},
    {"nodes": {"0": node("READY", {})}}, {"nodes": {"0": None}, "status": "UP"},
    {"nodes": {"x": node("READY", {})}, "status": "UP"}])
def test_no_json(data: t.Any) -> None:
    with pytest.raises(ValueError, match="no object|a node without|invalid literal"):
        parse.domain_json(json.dumps(data))
