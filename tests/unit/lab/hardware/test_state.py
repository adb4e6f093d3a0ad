# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.hardware import pci
from lab.hardware.spec import node_spec
from lab.hardware.state import Event, State, StateError

BMC, OTHER = node_spec("gb200", "h", 1), node_spec("l40s", "h", 1)
READ_4096 = b"\x30\x58"


def changed(path: Path | None = None, bmc: bool = True) -> State:
    """Every kind of state away from its default, on rail 1."""
    state = State(BMC if bmc else OTHER, path)
    state.runtime[(1, "lifespan")] = "20"
    state.config[1][pci.DEVICE_CONTROL:pci.DEVICE_CONTROL + 2] = READ_4096
    state.set_register(1, "QPTS", "dscp")
    state.set_parameter(1, "ROCE_CONTROL", "1")
    return state


def kept(state: State) -> tuple[bool, bool, bool, str]:
    """Of what ``changed`` set: driver's memory, PCI register, port register, current value of the parameter."""
    shown = state.show()[1]
    return ((1, "lifespan") in state.runtime,
            bytes(state.config[1][pci.DEVICE_CONTROL:pci.DEVICE_CONTROL + 2]) == READ_4096,
            shown["registers"]["QPTS"] == "dscp", shown["parameters"]["ROCE_CONTROL"]["current"])


@pytest.mark.parametrize(("event", "bmc", "wanted"), [
    (Event.DRIVER_RELOAD, True, (False, True, True, "0")),
    (Event.DRIVER_RELOAD, False, (False, True, True, "0")),
    (Event.FIRMWARE_RESET, True, (False, False, False, "1")),
    (Event.FIRMWARE_RESET, False, (False, False, False, "1")),
    (Event.WARM, True, (False, False, True, "0")),
    (Event.WARM, False, (False, False, False, "1")),
    (Event.COLD, True, (False, False, False, "1")),
    (Event.COLD, False, (False, False, False, "1")),
])
def test_what_is_lost_when(event: Event, bmc: bool, wanted: tuple[bool, bool, bool, str]) -> None:
    state = changed(bmc=bmc)
    assert kept(state) == (True, True, True, "0")
    state.happen(event)
    assert kept(state) == wanted
    assert state.show()[1]["parameters"]["ROCE_CONTROL"]["next"] == "1"
    assert state.rdma(1) == (wanted[3] == "0") and state.rdma(0)


def test_a_new_process_finds_what_outlives_it(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    changed(path).lose(0)
    again = State(BMC, path)
    again.happen(Event.WARM)
    assert kept(again) == (False, False, True, "0") and not again.on_bus(0)
    assert again.show()[1]["parameters"]["ROCE_CONTROL"] == {"default": "0", "current": "0", "next": "1"}
    State(BMC, path).happen(Event.COLD)
    assert kept(State(BMC, path))[2:] == (False, "1") and not State(BMC, path).on_bus(0)


def test_errors_name_what_there_is() -> None:
    state = State(OTHER)
    for call, text in (
        (lambda: state.set_register(0, "PFCX", "1"), "register 'PFCX' is not known; there are: QPTS"),
        (lambda: state.set_register(0, "QPTS", "x"), "register QPTS: got 'x', wanted one of pcp, dscp"),
        (lambda: state.set_parameter(0, "ROCE_CONTROL", "7"), "got '7', wanted one of 0, 1, 2"),
        (lambda: state.lose(2), "rail 2: h has 0 to 1"),
        (lambda: state.lose("0"), "rail '0': h has 0 to 1"),  # type: ignore[arg-type]
    ):
        with pytest.raises(StateError, match=text):
            call()
