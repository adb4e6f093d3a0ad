# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.faults import steps, table
from lab.faults.table import FaultError

ROWS = table.load()
GOOD: dict[str, Any] = {
    "text": "t", "fact": "f", "target": "rail", "survives_reboot": True, "touches": "rate of {port}",
    "parameters": {"share": {"kind": "share", "default": 0.5, "text": "x"}},
    "steps": [{"fabric": {"set": "tc {port} {rate*share}", "clear": "tc {port} {rate}"}}],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_complete(name: str) -> None:
    row = ROWS[name]
    assert row.text.endswith(".") and len(row.text) < 130
    # File and section of the research notes, or a manual page.
    assert re.search(r"[a-z0-9-]+\.md [0-9]+[0-9b.]*|[a-z_]+\(\d\)", row.fact), row.fact
    assert all(parameter.text for parameter in row.parameters.values())
    assert {mechanism for mechanism, _keys in row.steps} <= set(steps.MECHANISMS)
    if "parameters" in row.data:
        used = set().union(*(table.placeholders(keys) for _mechanism, keys in row.steps))
        assert set(row.data["parameters"]) <= used, "a parameter that changes nothing"


def test_the_table_has_what_was_asked_for() -> None:
    assert set(ROWS) == {"slow-rail", "slow-node", "leaf-mtu", "link-down", "lost-nic", "hung-tool", "missing-tool",
                         "lying-tool", "garbage-tool", "full-disk", "host-down", "host-dies"}
    assert [name for name, row in ROWS.items() if not row.survives_reboot] == ["hung-tool"]


def test_mechanisms_of_table_and_code_are_the_same() -> None:
    assert set(table.MECHANISMS) == set(steps.MECHANISMS)


@pytest.mark.parametrize(("change", "text"), [
    ({"fact": " "}, r"x\.fact: got ' ', wanted a text"),
    ({"fact": None}, r"x\.fact: got None"),
    ({"colour": 1}, "missing or unknown: colour"),
    ({"target": "rack"}, "got 'rack', wanted one of host, rails, rail, leaf"),
    ({"survives_reboot": "yes"}, "got 'yes', wanted true or false"),
    ({"touches": "{speed}"}, "unknown placeholder speed; there are: bridge, bucket"),
    ({"target": "host"}, "unknown placeholder port"),
    ({"steps": []}, "wanted a list of steps"),
    ({"steps": [{"magic": {}}]}, "mechanism 'magic', wanted one of fabric, host"),
    ({"steps": [{"fabric": {"clear": "x"}}]}, "wanted the keys set; clear may be there"),
    ({"steps": [{"fabric": {"set": "x", "when": "y"}}]}, "wanted the keys set"),
    ({"steps": [{"hardware": {"set": {"rail": "{nope}"}, "clear": {}}}]}, "unknown placeholder nope"),
    ({"parameters": {"share": {"kind": "share", "default": 2, "text": "x"}}}, "share: got '2', wanted a share"),
    ({"parameters": {"share": {"kind": "shade", "default": 2, "text": "x"}}}, "got 'shade', wanted one of rail"),
    ({"parameters": {"port": {"kind": "word", "default": "x", "text": "x"}}}, "the name has a meaning already"),
    ({"parameters": {"a": {"kind": "word", "default": "x"}}}, "text"),
    ({"survives_reboot": False, "steps": [{"tool": {"name": "ip", "content": None}}]}, "cannot come back by a reboot"),
])
def test_a_wrong_row_is_refused(change: dict[str, Any], text: str) -> None:
    data = copy.deepcopy(GOOD)
    table.row("x", data)
    data.update(change)
    with pytest.raises(FaultError, match=text):
        table.row("x", data)


@pytest.mark.parametrize("key", ["text", "fact", "target", "survives_reboot", "touches", "steps"])
def test_each_key_is_needed(key: str) -> None:
    with pytest.raises(FaultError, match=f"missing or unknown: {key}"):
        table.row("x", {name: value for name, value in GOOD.items() if name != key})


def test_the_file_is_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "rows.yml"
    for text, wanted in (("[", "rows.yml"), ("- a", "got list, wanted a mapping"), ("a: 1", "rows.yml: a: wanted")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FaultError, match=wanted):
            table.load(path)
    with pytest.raises(FaultError, match="No such file"):
        table.load(tmp_path / "none.yml")
    path.write_text(yaml.safe_dump({"x": GOOD}), encoding="utf-8")
    assert list(table.load(path)) == ["x"]


def test_expand() -> None:
    values = {"rate": 40_000_000, "share": 0.5, "rail": 3, "port": "gb1-r3"}
    assert table.expand("dev {port} rate {rate*share}bit", values) == "dev gb1-r3 rate 20000000bit"
    assert table.expand({"do": "lose", "rail": "{rail}"}, values) == {"do": "lose", "rail": 3}
    assert table.expand({"name": "{port}", "content": "echo {port}"}, values, "tool") == {
        "name": "gb1-r3", "content": "echo {port}"}
    assert table.expand(None, values) is None


def test_command_line_parameters() -> None:
    row = ROWS["slow-rail"]
    assert table.values_of(row, []) == {"rail": 0, "share": 0.5}
    assert table.values_of(row, ["share=.25", "rail=2"]) == {"rail": 2, "share": 0.25}
    for text, wanted in (("share=1", "parameter share: got '1', wanted a share between"), ("share=.0", "more than 0"),
                         ("rail=x", "parameter rail: got 'x', wanted a whole number from"), ("rail=16", "0 to 15"),
                         ("colour=red", "unknown parameter 'colour=red'; there are: rail=0, share=0.5"),
                         ("rail", "unknown parameter 'rail'")):
        with pytest.raises(FaultError, match=wanted):
            table.values_of(row, [text])
    for name, text in (("hung-tool", "tool=/usr/bin/x"), ("hung-tool", "tool=a b"), ("full-disk", "directory=etc"),
                       ("full-disk", "directory=/etc/$x"), ("host-dies", "process=a,"), ("host-dies", "delay=-1"),
                       ("leaf-mtu", "mtu=67")):
        with pytest.raises(FaultError, match=f"{name}: parameter"):
            table.values_of(ROWS[name], [text])
