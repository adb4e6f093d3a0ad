# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet record on disk, and the command line: exit codes, what cannot be read, the report as it must look."""
from __future__ import annotations

import gc
import json
import time
import typing as t
from pathlib import Path

import pytest

from plugins.module_utils._audit import cli, expect, io, report
from tests.unit.plugins.module_utils._audit.cases import CASES, VICTIM, audit, change
from tests.unit.plugins.module_utils._audit.fleet import GB200, L40S, NOW, Fleet

GOLDEN = Path(__file__).with_name("golden.json")


def store(folder: Path, fleet: Fleet) -> list[expect.HostWant]:
    for name, kinds in fleet.records.items():
        for kind in kinds:
            path = folder / kind / f"{name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(fleet.full(name, kind)), encoding="utf-8")
    io.write(folder / io.EXPECT, fleet.document())
    return expect.load(json.loads((folder / io.EXPECT).read_text(encoding="utf-8")))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record's time is NOW, which the command line takes from the clock."""
    class Clock:
        @staticmethod
        def now(_zone: t.Any) -> t.Any:
            return NOW

    monkeypatch.setattr(cli, "datetime", Clock)


def fleet() -> Fleet:
    return Fleet((GB200, 5), (L40S, 3))


def test_from_disk_is_what_it_is_in_memory(tmp_path: Path) -> None:
    one = change(change(fleet(), CASES["pfc-priority"]), CASES["nvconfig-pending"], "gb200-0004")
    assert io.audit(tmp_path, store(tmp_path, one), NOW) == audit(one)
    assert gc.isenabled()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 9}'])
def test_a_record_that_cannot_be_read_is_a_finding_of_its_host(tmp_path: Path, text: str) -> None:
    wants = store(tmp_path, fleet())
    (tmp_path / "mlx5_info" / f"{VICTIM}.json").write_text(text, encoding="utf-8")
    (finding,) = io.audit(tmp_path, wants, NOW)["findings"]
    assert (finding["id"], finding["hosts"]) == ("record-missing", [VICTIM])
    assert "its record of mlx5_info cannot be read" in finding["evidence"][0]


def test_exit_codes(tmp_path: Path, fresh: None, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path, fleet())
    assert cli.main([str(tmp_path)]) == 0
    assert "gb200/nvlink18      5     20       0" in capsys.readouterr().out
    store(tmp_path, change(fleet(), CASES["firmware-uneven"]))
    assert cli.main([str(tmp_path)]) == 0, "a warning"
    assert cli.main([str(tmp_path), "--fail-on", "warning"]) == 2
    store(tmp_path, change(fleet(), CASES["pfc-priority"]))
    capsys.readouterr()
    assert cli.main([str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["findings"][0]["id"] == "pfc-priority"
    assert cli.main([str(tmp_path), "--fail-on", "never"]) == 0


def test_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (None, "{", "[]", '{"schema_version": 2}', '{"schema_version": 1}',
                    '{"schema_version": 1, "policies": [], "hosts": {"a": {"policy": 3}}}'):
        path = tmp_path / "expect.json"
        if content is not None:
            path.write_text(content, encoding="utf-8")
        assert cli.main([str(tmp_path), "--expect", str(path)]) == 3, content
        assert capsys.readouterr().err.startswith(f"audit: {path}: ")
    with pytest.raises(SystemExit) as stop:
        cli.main([])
    assert stop.value.code == 3


def test_the_terminal_gets_no_escape_sequences(tmp_path: Path, fresh: None, capsys: pytest.CaptureFixture[str]) -> None:
    one = fleet()
    one.records[VICTIM]["mlx5_info"]["problems"] = [{"object": "\x1b[31mred", "got": "x"}]
    store(tmp_path, one)
    cli.main([str(tmp_path)])
    assert "\x1b" not in capsys.readouterr().out


def test_the_report_is_as_it_was() -> None:
    """A change of golden.json is a change of the interface: it is read by others."""
    one = fleet()
    for name, host in (("mtu-running", VICTIM), ("pfc-priority", VICTIM), ("pfc-priority", "gb200-0004"),
                       ("firmware-uneven", "gb200-0003"), ("machine-id-duplicate", "gb200-0005")):
        change(one, CASES[name], host)
    document = audit(one)
    assert document == json.loads(GOLDEN.read_text(encoding="utf-8"))
    table = report.table(document)
    assert "ERROR   pfc-priority         gb200-[0002,0004] rail 0" in table
    assert max(map(len, table)) <= 4 * report.WIDTH


def test_messages_are_few() -> None:
    found = report.failing(audit(change(fleet(), CASES["switch-dscp"])), "error")
    assert report.message(found).startswith("switch-dscp: gb200-0002: got switch takes DSCP 24, wanted DSCP 26")
    assert report.message(found * 9).endswith("; and 4 more")


def test_time_grows_with_the_fleet_and_not_faster(tmp_path: Path) -> None:
    """Processor time, generously: the exact figures are in benchmarks/bench_audit.py."""
    spent = []
    for hosts in (40, 160):
        folder = tmp_path / str(hosts)
        folder.mkdir()
        wants = store(folder, Fleet((GB200, hosts)))
        start = time.process_time()
        assert io.audit(folder, wants, NOW)["findings"] == []
        spent.append(time.process_time() - start)
    assert spent[1] < 4 * 3 * max(spent[0], 0.02)
