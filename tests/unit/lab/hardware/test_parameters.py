# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware parameters of the emulated cards, the door to them, and the stand-in that a host's programs use."""
from __future__ import annotations

import errno
import importlib.machinery
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import pytest

from lab.hardware import parameters
from lab.hardware.nodes import Attr
from lab.hardware.spec import node_spec
from lab.hardware.state import Event, State
from plugins.module_utils._nvconfig import parse

ROOT = Path(__file__).resolve().parents[4]
TOOL = ROOT / "lab/repository/packages/mstflint/usr/bin/mstconfig"
RESET_TOOL = TOOL.with_name("mstfwreset")
VPI, ETHERNET = node_spec("gb200", "h", 1), node_spec("l40s", "h", 1)
PCI = "0000:41:00.0"


def door(state: State, rail: int = 0, root: bool = True) -> Attr:
    return parameters.door(state.card(rail), state.save, lambda: root)


def read(state: State, rail: int = 0) -> dict[str, dict[str, object]]:
    return dict(json.loads(door(state, rail).read())["parameters"])


def refused(state: State, text: str) -> bool:
    with pytest.raises(OSError) as caught:
        door(state).write(text.encode(), 0)
    return caught.value.errno == errno.EINVAL


def test_a_write_is_for_the_next_boot_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "hardware.json"
    state = State(ETHERNET, path)
    door(state).write(b'{"CNP_DSCP_P1": 40, "SRIOV_EN": 1}\n', 0)
    assert [read(state)["CNP_DSCP_P1"][key] for key in ("default", "current", "next")] == [48, 48, 40]
    assert State(ETHERNET, path).show()[0]["parameters"]["CNP_DSCP_P1"]["next"] == "40"
    assert read(state, rail=1)["CNP_DSCP_P1"]["next"] == 48
    state.happen(Event.FIRMWARE_RESET)
    assert read(state)["SRIOV_EN"]["current"] == 1


@pytest.mark.parametrize("text", [
    '{"CNP_DSCP_P1": 64}', '{"CNP_DSCP_P1": -1}', '{"NO_SUCH": 1}', '{"LINK_TYPE_P1": 2}', '{"PCI_WR_ORDERING": 1}',
    '{"CNP_DSCP_P1": 40, "NO_SUCH": 1}', '{"USER_PROGRAMMABLE_CC": 1}', '{"LLDP_NB_DCBX_P1": 1}',
    '{"LLDP_NB_DCBX_P1": 1, "LLDP_NB_RX_MODE_P1": 2}', "nonsense", "[]", '{"CNP_DSCP_P1": "x"}',
])
def test_what_the_firmware_refuses_it_refuses_whole(text: str) -> None:
    state = State(ETHERNET)
    assert refused(state, text)
    assert state.next == [{}, {}]


def test_rules_are_checked_together() -> None:
    state = State(ETHERNET)
    door(state).write(b'{"USER_PROGRAMMABLE_CC": 1, "ROCE_CC_LEGACY_DCQCN": 0}', 0)
    door(state).write(b'{"LLDP_NB_DCBX_P1": 1, "LLDP_NB_RX_MODE_P1": 2, "LLDP_NB_TX_MODE_P1": 2}', 0)
    assert refused(state, '{"ROCE_CC_LEGACY_DCQCN": 1}')


def test_a_gate_opens_when_it_is_loaded() -> None:
    state = State(ETHERNET)
    door(state).write(b'{"ADVANCED_PCI_SETTINGS": 1}', 0)
    assert refused(state, '{"PCI_WR_ORDERING": 1}')
    state.happen(Event.COLD)
    door(state).write(b'{"PCI_WR_ORDERING": 1}', 0)
    assert read(state)["PCI_WR_ORDERING"]["next"] == 1


def test_link_type_only_on_vpi_cards() -> None:
    state = State(VPI)
    shown = read(state)["LINK_TYPE_P1"]
    assert (shown["default"], shown["current"], shown["present"], state.link_layer(0)) == (1, 2, True, "Ethernet")
    door(state).write(b'{"LINK_TYPE_P1": 1}', 0)
    state.happen(Event.WARM)
    assert state.link_layer(0) == "Ethernet", "its board keeps the power"
    state.happen(Event.COLD)
    assert (state.link_layer(0), state.link_layer(1)) == ("InfiniBand", "Ethernet")
    assert State(ETHERNET).link_layer(0) == "Ethernet"


def test_the_door_is_roots() -> None:
    shut = door(State(ETHERNET), root=False)
    assert shut.mode & 0o777 == 0o600
    for call in (shut.read, lambda: shut.write(b"{}", 0)):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EACCES


def load(path: Path) -> Any:
    class Loader(importlib.machinery.SourceFileLoader):
        def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
            """No byte code beside the program: it would go into the package."""

    loader = Loader(path.name, str(path))
    spec = importlib.util.spec_from_loader(path.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Host:
    """The stand-in over a state, without a host: its two accesses to the door go straight to the model."""

    def __init__(self, state: State, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.tool, self.capsys = load(TOOL), capsys
        monkeypatch.setattr(self.tool, "read_card", lambda device: json.loads(door(state).read()))
        monkeypatch.setattr(self.tool, "write_card",
                            lambda device, values: door(state).write(json.dumps(values).encode(), 0))
        monkeypatch.setattr("sys.stdin", io.StringIO())

    def __call__(self, *argv: str) -> tuple[int, str]:
        code = self.tool.main(["mstconfig", *argv])
        return code, self.capsys.readouterr().out


@pytest.fixture(name="state")
def fixture_state() -> State:
    return State(ETHERNET)


@pytest.fixture(name="host")
def fixture_host(state: State, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Host:
    return Host(state, monkeypatch, capsys)


def test_layout_of_a_query(host: Host, state: State) -> None:
    state.set_parameter(0, "CNP_DSCP_P1", "40")
    code, text = host("-d", PCI, "-e", "q", "CNP_DSCP_P1", "ROCE_CONTROL", "HOST_CHAINING_DESCRIPTORS")
    lines = text.splitlines()
    assert code == 0
    # Lines as in the samples mlxconfig-1 and -5, blanks at the end included.
    assert lines[:6] == ["", "Device #1:", "----------", "", "Device type:        ConnectX7           ",
                         "Name:               N/A                 "]
    assert lines[9] == f"Configurations:{' ' * 37}Default{' ' * 14}Current{' ' * 14}Next Boot"
    assert lines[10] == f"*       CNP_DSCP_P1{' ' * 33}48{' ' * 19}48{' ' * 19}40{' ' * 18}"
    assert lines[11].split() == ["ROCE_CONTROL", *["DEVICE_DEFAULT(0)"] * 3]
    assert lines[12].split() == ["HOST_CHAINING_DESCRIPTORS", *["Array[0..7]"] * 3]
    assert lines[13:] == ["The '*' shows parameters with next value different from default/current value."]
    reading = parse.query(text, PCI)
    assert (reading.device_type, reading.rows["CNP_DSCP_P1"].next.number) == ("ConnectX7", 40)
    assert "ARRAY" not in host("-d", PCI, "q")[1] and "Default" not in host("-d", PCI, "q", "SRIOV_EN")[1]


def test_set_and_reset(host: Host, state: State) -> None:
    code, text = host("-y", "-d", PCI, "set", "MULTIPATH_DSCP=dscp_1", "HOST_CHAINING_DESCRIPTORS[0..1]=0x7")
    assert code == 0 and " Apply new Configuration? (y/n) [n] : y\nApplying... Done!\n-I- Please reboot machine" in text
    assert "MULTIPATH_DSCP                              DEVICE_DEFAULT(0)    DSCP_1(3)" in text
    assert [state.next[0][name] for name in ("MULTIPATH_DSCP", "HOST_CHAINING_DESCRIPTORS[1]")] == ["3", "7"]
    # Without -y and with closed standard input it aborts (mlx5-roce 5.3).
    code, text = host("-d", PCI, "set", "CNP_DSCP_P1=1")
    assert code == 2 and text.endswith("-E- Aborted by user.\n")
    assert host("-y", "-d", PCI, "reset")[0] == 0
    assert read(state)["MULTIPATH_DSCP"]["next"] == 0


@pytest.mark.parametrize(("argv", "text"), [
    (("-d", PCI, "q", "NO_SUCH"), "-E- Unknown Parameter: NO_SUCH"),
    (("-d", PCI, "-e", "q", "LINK_TYPE_P1"), "-E- The Device doesn't support LINK_TYPE_P1 parameter"),
    (("-d", PCI, "q", "HOST_CHAINING_DESCRIPTORS[8]"), "is out of range. Maximal index is 7"),
    (("-y", "-d", PCI, "set", "MULTIPATH_DSCP=DSCP_9"), "-E- Unknown value DSCP_9"),
    (("-y", "-d", PCI, "set", "CNP_DSCP_P1=many"), "-E- Cannot parse the value"),
    (("-y", "-d", PCI, "set", "CNP_DSCP_P1=64"), "Applying... Failed!"),
    (("-y", "-d", PCI, "set", "HOST_CHAINING_DESCRIPTORS=1"), "-E- Expected a parameter with index"),
    (("-y", "-d", PCI, "set", "A=1=2"), "Invalid Configuration argument"),
    (("-y", "-d", PCI, "set", "SRIOV_EN=1", "SRIOV_EN=0"), "Duplicate parameter, SRIOV_EN."),
    (("-y", "-d", PCI, "set"), "missing configuration arguments"),
    (("q",), "expects device to be specified"), (("-x", "q"), "invalid argument: -x"), ((), "No command found"),
])
def test_errors_are_on_the_standard_output_with_status_3(host: Host, argv: tuple[str, ...], text: str) -> None:
    code, said = host(*argv)
    assert code == 3 and text in said


def test_a_card_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tool = load(TOOL)
    tool.FUNCTIONS = str(tmp_path)
    assert tool.main(["mstconfig", "-d", "41:00.0", "q"]) == 3
    assert capsys.readouterr().out == "-E- Failed to open the device\n"
    assert tool.path_of("41:00.0") == f"{tmp_path}/{PCI}/aidc_lab_nvconfig"


def test_what_resets_are_supported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tool = load(RESET_TOOL)
    tool.FUNCTIONS = str(tmp_path)
    assert tool.main(["mstfwreset", "-d", PCI, "query"]) == 1
    (tmp_path / PCI).mkdir()
    (tmp_path / PCI / "config").touch()
    capsys.readouterr()
    assert tool.main(["mstfwreset", "-d", PCI, "query"]) == 0
    text = capsys.readouterr().out
    assert parse.reset_levels(text) == {3, 4}
    sample = ROOT.parent / "shared/samples/mlxfwreset-1.txt"
    assert not sample.exists() or text == sample.read_text(encoding="utf-8")
    assert tool.main(["mstfwreset", "-d", PCI, "-l", "3", "-y", "reset"]) == 1
    assert "resets nothing" in capsys.readouterr().out
