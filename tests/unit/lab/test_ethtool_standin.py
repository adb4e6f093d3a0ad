# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in of ethtool over a model's door: what it prints, what it refuses, what it leaves to the real program."""
from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lab.hardware import ethtool
from lab.repository.build import FILES
from tests.unit.lab.hardware.test_model import RAIL, make

NAME = RAIL.name


class Handed(Exception):
    """The real program would have been started."""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("standin_ethtool", str(FILES / "ethtool/usr/sbin/ethtool"))
    spec = importlib.util.spec_from_loader("standin_ethtool", loader)
    assert spec is not None
    # No bytecode beside a program that goes into a package.
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    model, _source = make(tmp_path, RAIL)
    file = tmp_path / "door"
    door = ethtool.Door(model)

    def real(argv: list[str]) -> Any:
        raise Handed(" ".join(argv[1:]))

    class Opened:
        """The door as a file: a read makes the answer, a write is one request."""

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        read = staticmethod(door.show)
        write = staticmethod(door.store)

    monkeypatch.setattr(module, "DOOR", str(file))
    monkeypatch.setattr(module, "open", lambda *arguments, **options: Opened(), raising=False)
    monkeypatch.setattr(module, "real", real)
    monkeypatch.setattr(module, "has_json", lambda option: True)
    return module


def run(tool: ModuleType, *argv: str) -> int:
    code: int = tool.main(["ethtool", *argv])
    return code


def test_text(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tool, "-a", NAME) == run(tool, "-l", NAME) == run(tool, "-i", NAME) == 0
    said = capsys.readouterr().out
    assert f"Pause parameters for {NAME}:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n\n" in said
    assert "Combined:\t63\nCurrent hardware settings:\n" in said
    assert "driver: mlx5_core\n" in said


def test_a_change_shows(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tool, "-G", NAME, "rx", "5000") == run(tool, "-A", NAME, "rx", "off", "tx", "off") == 0
    assert run(tool, "--json", "-g", NAME) == run(tool, "--json", "-a", NAME) == 0
    said = capsys.readouterr().out
    assert '"rx": 8192' in said and '"rx": false' in said


@pytest.mark.parametrize(("argv", "words"), [
    (["-L", NAME, "combined", "99"], "netlink error: requested channel count exceeds maximum (offset 32)\n"
                                     "netlink error: Invalid argument\n"),
    (["-A", NAME, "autoneg", "on"], "netlink error: Invalid argument\n"),
    (["-G", NAME, "tx", "1"], "netlink error: Invalid argument\n"),
])
def test_refused(tool: ModuleType, argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tool, *argv) == 1
    assert capsys.readouterr().err == words


@pytest.mark.parametrize("argv", [
    [], ["-g"], ["-g", "eth0"], ["-S", NAME], ["--version"], ["-A", NAME, "bogus", "1"], ["-G", NAME, "rx"],
    ["-G", NAME, "rx", "many"], ["--json", "-l", NAME], ["-a", NAME, "more"], [NAME],
])
def test_what_is_the_real_programs(tool: ModuleType, argv: list[str]) -> None:
    with pytest.raises(Handed) as caught:
        run(tool, *argv)
    assert str(caught.value) == " ".join(argv)


def test_json_where_this_version_has_none(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "has_json", lambda option: False)
    with pytest.raises(Handed):
        run(tool, "--json", "-g", NAME)
