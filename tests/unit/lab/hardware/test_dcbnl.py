# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's behaviour of mlx5-roce 4.3, and what is lost when (4.8)."""
from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from lab.hardware.dcbnl import Dcbnl
from lab.hardware.spec import node_spec
from lab.hardware.state import Event, State

BMC, OTHER = node_spec("gb200", "h", 1), node_spec("l40s", "h", 1)
DEFAULT = [[dscp, dscp >> 3] for dscp in range(64)]
ETS = {"prio_tc": list(range(8)), "tc_tsa": ["ets"] * 7 + ["strict"], "tc_bw": [40, 10, 10, 10, 10, 10, 10, 0]}


class Port:
    def __init__(self, bmc: bool = False) -> None:
        self.toggled = 0
        self.state = State(BMC if bmc else OTHER)
        self.dcb = Dcbnl(self.state, self.state.spec.rails[0], lambda: 1500, self._toggle)

    def _toggle(self) -> None:
        self.toggled += 1

    def set(self, kind: str, **values: Any) -> None:
        self.dcb.store(json.dumps({"set": kind, **values}))

    def code(self, kind: str, **values: Any) -> int | None:
        with pytest.raises(OSError) as caught:
            self.set(kind, **values)
        return caught.value.errno

    def pfc(self, *priorities: int, delay: int = 7) -> None:
        self.set("pfc", prio_pfc=[number in priorities for number in range(8)], delay=delay)


@pytest.fixture
def port() -> Port:
    return Port()


def test_a_fresh_port(port: Port) -> None:
    shown = port.dcb.show()
    assert shown["app"] == [] and shown["pfc"]["prio_pfc"] == [False] * 8 and "host" in shown["dcbx"]
    assert shown["ets"]["prio_tc"] == [1, 0, 2, 3, 4, 5, 6, 7] and set(shown["ets"]["tc_tsa"]) == {"vendor"}


def test_only_a_new_bitmap_toggles_the_link(port: Port) -> None:
    port.pfc(3)
    port.pfc(3, delay=20)
    assert (port.toggled, port.dcb.show()["pfc"]["delay"]) == (1, 20)
    port.pfc(3, delay=1000)
    port.pfc(3, delay=0)
    assert (port.toggled, port.dcb.show()["pfc"]["delay"]) == (1, 20)
    port.pfc()
    assert port.toggled == 2


def test_the_first_entry_flips_trust_and_the_others_stay_as_the_hardware_has_them(port: Port) -> None:
    port.set("app", entries=[[26, 3]])
    assert port.dcb.show()["app"] == [[26, 3]]
    port.set("app", entries=DEFAULT)
    assert port.dcb.show()["app"] == DEFAULT
    port.set("app", entries=[[26, 5]])
    assert [entry for entry in port.dcb.show()["app"] if entry[0] == 26] == [[26, 5]]


def test_a_flush_ends_in_pcp_with_all_at_priority_0(port: Port) -> None:
    port.set("app", entries=DEFAULT)
    port.set("unapp", entries=DEFAULT)
    assert port.dcb.show()["app"] == [] and port.state.show()[0]["registers"]["QPTS"] == "pcp"
    port.set("app", entries=[[26, 3]])
    # A driver load lists all 64: the hardware's own values.
    port.state.happen(Event.DRIVER_RELOAD)
    assert port.dcb.show()["app"] == [[dscp, 3 if dscp == 26 else 0] for dscp in range(64)]


def test_what_the_kernel_refuses(port: Port) -> None:
    assert port.code("app", entries=[[64, 0]]) == port.code("app", entries=[[1, 8]]) == errno.EINVAL
    assert port.code("unapp", entries=[[1, 1]]) == errno.ENOENT
    assert port.code("ets", **{**ETS, "tc_bw": [41, 10, 10, 10, 10, 10, 10, 0]}) == errno.EINVAL
    assert port.code("dcbx", flags=["ieee"]) == port.code("nonsense") == port.code("pfc", wrong=1) == errno.EINVAL
    with pytest.raises(OSError):
        port.dcb.store("[")


def test_a_class_that_is_not_ets_reads_100(port: Port) -> None:
    port.set("ets", **ETS)
    assert port.dcb.show()["ets"]["tc_bw"] == [40, 10, 10, 10, 10, 10, 10, 100]


def test_buffers(port: Port) -> None:
    buffers = {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "buffer_size": [100000, 300000, 0, 0, 0, 0, 0, 0]}
    port.pfc(3)
    port.set("buffer", **buffers)
    assert port.dcb.show()["buffer"]["buffer_size"][1] == 300000
    assert port.code("buffer", **{**buffers, "buffer_size": [100000, 0, 0, 0, 0, 0, 0, 0]}) == errno.EINVAL
    assert port.code("buffer", **{**buffers, "buffer_size": [100000, 30000, 0, 0, 0, 0, 0, 0]}) == errno.ENOMEM
    assert port.code("buffer", **{**buffers, "buffer_size": [9999999, 300000, 0, 0, 0, 0, 0, 0]}) == errno.EINVAL


def test_firmware_as_owner_overrules_without_an_error(port: Port) -> None:
    port.set("dcbx", flags=[])
    port.pfc(3)
    port.set("app", entries=DEFAULT)
    shown = port.dcb.show()
    assert (shown["dcbx"], shown["app"], shown["pfc"]["prio_pfc"][3], port.toggled) == (["cee", "ieee"], [], False, 0)
    port.set("dcbx", flags=["host", "ieee"])
    port.pfc(3)
    assert port.dcb.show()["pfc"]["prio_pfc"][3]


@pytest.mark.parametrize(("event", "bmc", "registers"), [
    (Event.DRIVER_RELOAD, False, True), (Event.WARM, True, True), (Event.WARM, False, False),
    (Event.COLD, True, False), (Event.FIRMWARE_RESET, True, False)])
def test_what_is_lost_when(event: Event, bmc: bool, registers: bool) -> None:
    port = Port(bmc)
    port.set("app", entries=DEFAULT)
    port.set("ets", **ETS)
    port.pfc(3, delay=20)
    port.state.happen(event)
    shown = port.dcb.show()
    assert (bool(shown["app"]), shown["pfc"]["prio_pfc"][3]) == (registers, registers)
    assert shown["ets"]["tc_tsa"][0] == "vendor" and shown["pfc"]["delay"] == 7
