# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins for dcb and mlnx_qos over the model's dcbnl: layouts of the real tools, messages, exit statuses."""
from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lab.hardware.dcbnl import Dcbnl
from lab.hardware.spec import node_spec
from lab.hardware.state import State

ROOT = Path(__file__).resolve().parents[3]
DCB = ROOT / "lab/guest/usr/sbin/dcb"
MLNX_QOS = ROOT / "lab/repository/packages/mlnx-tools/usr/bin/mlnx_qos"
DEFAULT = [f"{dscp}:{dscp >> 3}" for dscp in range(64)]
Run = Callable[..., tuple[int, str, str]]


def load(path: Path) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(f"standin_{path.name}", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def port() -> Dcbnl:
    state = State(node_spec("l40s", "h", 1))
    return Dcbnl(state, state.spec.rails[0], lambda: 1500, lambda: None)


@pytest.fixture
def dcb(port: Dcbnl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    module = load(DCB)

    def get(_self: Any, dev: str) -> dict[str, Any]:
        if dev != "rail0":
            raise module.DcbError("Attribute read: No such device")
        return port.show()

    def put(_self: Any, dev: str, request: dict[str, Any]) -> None:
        try:
            port.store(json.dumps(request))
        except OSError as error:
            raise module.DcbError(f"Attribute write: {error.strerror}") from None

    monkeypatch.setattr(module.Dcb, "get", get)
    monkeypatch.setattr(module.Dcb, "put", put)

    def run(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dcb", *argv])
        status = module.main()
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def mlnx_qos(port: Dcbnl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    module = load(MLNX_QOS)
    monkeypatch.setattr(module, "get", lambda interface: port.show())
    monkeypatch.setattr(module, "put", lambda interface, request: port.store(json.dumps(request)))
    monkeypatch.setattr(module.subprocess, "run", lambda argv, check: type("Done", (), {"returncode": 3}))

    def run(*argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mlnx_qos", "-i", "rail0", *argv])
        status = module.main()
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_text_of_dcb_as_in_its_manuals(dcb: Run) -> None:
    assert dcb("pfc", "set", "dev", "rail0", "prio-pfc", "all:off", "6:on", "7:on", "delay", "12") == (0, "", "")
    assert dcb("pfc", "show", "dev", "rail0")[1] == (
        "pfc-cap 8 macsec-bypass off delay 12 \n"
        "prio-pfc 0:off 1:off 2:off 3:off 4:off 5:off 6:on 7:on \n")
    assert dcb("app", "show", "dev", "rail0") == (0, "", "")
    dcb("app", "add", "dev", "rail0", "dscp-prio", "0:0", "CS3:2", "26:3", "48:6")
    assert dcb("app", "show", "dev", "rail0", "dscp-prio")[1] == "dscp-prio 0:0 CS3:2 AF31:3 CS6:6 \n"
    assert dcb("-N", "app", "show", "dev", "rail0")[1] == "dscp-prio 0:0 24:2 26:3 48:6 \n"
    assert dcb("dcbx", "show", "dev", "rail0")[1] == "host cee ieee \n"
    assert dcb("ets", "show", "dev", "rail0", "prio-tc")[1] == "prio-tc 0:1 1:0 2:2 3:3 4:4 5:5 6:6 7:7 \n"
    assert dcb("buffer", "show", "dev", "rail0", "total-size")[1] == "total-size 2044224b \n"


def test_json_of_dcb_single_and_in_a_batch(dcb: Run, tmp_path: Path) -> None:
    assert json.loads(dcb("-j", "pfc", "show", "dev", "rail0")[1]) == {
        "pfc_cap": 8, "macsec_bypass": False, "delay": 7, "prio_pfc": [False] * 8}
    assert dcb("-j", "app", "show", "dev", "rail0")[1] == "{}\n"
    file = tmp_path / "batch"
    file.write_text("app add dev rail0 dscp-prio 26:3\napp show dev rail0\n# nothing\ndcbx show dev rail0\n")
    assert dcb("-j", "-b", str(file)) == (
        0, '{"dscp_prio":[[26,3]]},{"host":true,"cee":true,"ieee":true}\n', "")
    file.write_text("dcbx show dev rail0\ndcbx show dev nope\ndcbx show dev rail0\n")
    status, out, err = dcb("-j", "-b", str(file))
    assert (status, out) == (1, '{"host":true,"cee":true,"ieee":true}\n')
    assert err == f"Attribute read: No such device\nCommand failed {file}:2\n"
    assert dcb("-j", "-f", "-b", str(file))[1].count("host") == 2


@pytest.mark.parametrize(("argv", "text"), [
    (["app", "add", "dev", "rail0", "dscp-prio", "64:3"],
     "In DSCP:PRIO mapping, DSCP is expected to be 0..63\nInvalid mapping 64\n"),
    (["app", "add", "dev", "rail0", "dscp-prio", "26:9"],
     "In DSCP:PRIO mapping, PRIO is expected to be 0..7\nInvalid mapping 26\n"),
    (["ets", "set", "dev", "rail0", "tc-tsa", "all:ets", "tc-bw", "all:0", "0:50", "3:55"],
     "Bandwidth percentages in tc-bw sum to 105%, expected 100%\n"),
    (["foo"], 'Object "foo" is unknown\n'), (["pfc", "foo"], 'What is "foo"?\n'),
    (["dcbx", "set", "dev", "rail0", "foo"], 'What is "foo"?\n'),
    (["dcbx", "set", "dev", "rail0", "ieee"], "Attribute write: Invalid argument\n"),
    (["pfc", "show", "dev", "nope"], "Attribute read: No such device\n"),
])
def test_errors_of_dcb(dcb: Run, argv: list[str], text: str) -> None:
    assert dcb(*argv) == (1, "", text)


def test_replace_fails_inside_and_exits_0(dcb: Run) -> None:
    dcb("app", "add", "dev", "rail0", "dscp-prio", "26:3")
    status, _out, err = dcb("app", "replace", "dev", "rail0", "dscp-prio", "26:5")
    assert status == 0 and "Could not remove replaced APP entries" in err
    assert dcb("-N", "app", "show", "dev", "rail0")[1] == "dscp-prio 26:5 \n"
    dcb("app", "flush", "dev", "rail0", "dscp-prio")
    assert dcb("app", "show", "dev", "rail0")[1] == ""


def test_mlnx_qos_and_dcb_see_each_others_changes(dcb: Run, mlnx_qos: Run) -> None:
    assert "Priority trust state: pcp\n" in mlnx_qos()[1]
    dcb("app", "add", "dev", "rail0", "dscp-prio", *DEFAULT)
    out = mlnx_qos("--pfc", "0,0,0,1,0,0,0,0", "-d", "os")[1]
    assert "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:0 dscp:07,06,05,04,03,02,01,00,\n" in out
    assert "\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0   \n" in out
    assert "tc: 0 ratelimit: unlimited, tsa: vendor\n\t priority:  1\n" in out
    assert dcb("pfc", "show", "dev", "rail0", "prio-pfc")[1].split()[4] == "3:on"
    mlnx_qos("--dscp2prio", "set,26,5", "--dscp2prio", "set,27,5")
    assert " 26:5 27:5 " in dcb("-N", "app", "show", "dev", "rail0")[1]
    mlnx_qos("-p", "0,1,2,3,4,5,6,7", "-s", "ets,ets,ets,ets,ets,ets,strict,ets", "-t", "10,8,8,50,8,8,0,8")
    assert "tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%\n" in mlnx_qos()[1]
    mlnx_qos("--trust", "pcp")
    assert dcb("app", "show", "dev", "rail0")[1] == ""


def test_mlnx_qos_trust_does_nothing_beside_an_entry(dcb: Run, mlnx_qos: Run) -> None:
    dcb("app", "add", "dev", "rail0", "dscp-prio", "26:3")
    mlnx_qos("--trust", "dscp")
    assert dcb("-N", "app", "show", "dev", "rail0")[1] == "dscp-prio 26:3 \n"


@pytest.mark.parametrize("argv", [
    ["--trust", "dscp", "--dscp2prio", "set,26,3"], ["--dscp2prio", "set,64,3"], ["--pfc", "0,1"], ["--trust", "x"],
    ["-t", "10,10,10,10,10,10,10,10", "-s", "ets,ets,ets,ets,ets,ets,ets,ets"]])
def test_bad_values_of_mlnx_qos_end_with_1_and_text_on_stdout(mlnx_qos: Run, argv: list[str]) -> None:
    status, out, err = mlnx_qos(*argv)
    assert status == 1 and out and err == ""
