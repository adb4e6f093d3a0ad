# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another card in a slot, links that trained otherwise, virtual functions: the same behind all doors."""
from __future__ import annotations

import errno
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from lab.hardware import pci
from lab.hardware.fs import HardwareFS
from lab.hardware.model import Node
from lab.hardware.nodes import Attr, Dir, Link
from lab.hardware.spec import node_spec
from lab.hardware.state import Event, State, StateError

PCI = "0000:41:00.0"
FUNCTION = f"devices/pci0000:40/0000:40:01.1/{PCI}"


class Silent:
    def drain(self) -> list[Any]:
        return []

    def dump(self) -> list[Any]:
        return []


@pytest.fixture
def hardware(tmp_path: Path) -> HardwareFS:
    state = State(node_spec("l40s", "h", 1), tmp_path / "hardware.json")
    (tmp_path / "class/net").mkdir(parents=True)
    return HardwareFS(Node(state.spec, str(tmp_path), Silent(), state))


def text(hardware: HardwareFS, path: str) -> str:
    node = hardware._node(f"/{path}")
    assert isinstance(node, Attr)
    return node.read().decode().rstrip("\n")


def names(hardware: HardwareFS, path: str) -> set[str]:
    node = hardware._node(f"/{path}")
    assert isinstance(node, Dir)
    return set(node.names())


def test_a_link_of_eight_lanes_and_one_that_is_faster(hardware: HardwareFS) -> None:
    state = hardware.model.state
    state.config[0][pci.DEVICE_CONTROL:pci.DEVICE_CONTROL + 2] = b"\x30\x58"
    state.change(0, {"trained_width": "8"})
    assert [text(hardware, f"{FUNCTION}/{which}_link_width") for which in ("current", "max")] == ["8", "16"]
    able, status = (struct.unpack_from("<H", state.config[0], pci.CAP_EXPRESS + offset)[0] for offset in (12, 18))
    assert (able >> 4 & 63, status >> 4 & 63) == (16, 8), "what lspci reads"
    assert bytes(state.config[0][pci.DEVICE_CONTROL:pci.DEVICE_CONTROL + 2]) == b"\x30\x58", "no power was lost"
    state.change(0, {"trained_speed": "64.0 GT/s PCIe"})
    assert text(hardware, f"{FUNCTION}/current_link_speed") == "64.0 GT/s PCIe"
    assert text(hardware, f"{FUNCTION}/current_link_width") == "16", "the other change is gone"
    state.change(0, {})
    assert text(hardware, f"{FUNCTION}/current_link_speed") == "32.0 GT/s PCIe"


def test_another_firmware_and_another_card(hardware: HardwareFS) -> None:
    state = hardware.model.state
    state.change(0, {"fw_ver": "28.38.1900", "device": "0xa2dc", "card_type": "BlueField3"})
    assert text(hardware, f"{FUNCTION}/infiniband/mlx5_0/fw_ver") == "28.38.1900"
    answer = json.loads(text(hardware, "dev/uverbs0"))
    assert (answer["fw_ver"], answer["vendor_part_id"]) == ("28.38.1900", 0xa2dc)
    assert text(hardware, f"{FUNCTION}/device") == "0xa2dc" and "d0000A2DC" in text(hardware, f"{FUNCTION}/modalias")
    assert struct.unpack_from("<H", state.config[0], 2)[0] == 0xa2dc
    assert "BlueField3" in state.spec.rails[0].card_type
    shown = state.card(0).show()
    assert shown["INTERNAL_CPU_MODEL"]["present"] and not state.card(1).show()["INTERNAL_CPU_MODEL"]["present"]
    assert text(hardware, f"{FUNCTION.replace('40', 'c0').replace('41:', 'c1:')}/device") == "0x1021"


def test_changes_outlive_a_boot_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "hardware.json"
    state = State(node_spec("gb200", "h", 1), path)
    state.change(2, {"rate_gbps": 200, "lane_speed": "HDR"})
    again = State(node_spec("gb200", "h", 1), path)
    again.happen(Event.COLD)
    assert (again.spec.rails[2].rate_gbps, again.spec.rails[1].rate_gbps) == (200, 400)
    for fields, words in (({"mac": "x"}, "field 'mac' is not known"), ({"rate_gbps": "200"}, "wanted int"),
                          ("x", "wanted an object")):
        with pytest.raises(StateError, match=words):
            again.change(2, fields)  # type: ignore[arg-type]
    assert again.spec.rails[2].rate_gbps == 200


def test_a_firmware_that_does_not_know_a_parameter(hardware: HardwareFS) -> None:
    state = hardware.model.state
    state.change(1, {"firmware_lacks": ["CNP_DSCP_P1"]})
    assert not state.card(1).present("CNP_DSCP_P1") and state.card(0).present("CNP_DSCP_P1")
    assert "is not there" in state.card(1).refusal({"CNP_DSCP_P1": 40})


def test_a_value_as_delivered_is_loaded_and_stays(hardware: HardwareFS) -> None:
    state = hardware.model.state
    state.load_parameter(0, "CNP_DSCP_P1", "40")
    state.happen(Event.COLD)
    assert (state.card(0).current("CNP_DSCP_P1"), state.card(0).next("CNP_DSCP_P1")) == (40, 40)
    state.load_parameter(0, "CNP_DSCP_P1", None)
    assert state.card(0).current("CNP_DSCP_P1") == 48


def test_virtual_functions_come_and_go_by_sysfs(hardware: HardwareFS) -> None:
    state, door = hardware.model.state, f"{FUNCTION}/sriov_numvfs"

    def write(count: str) -> int:
        node = hardware._node(f"/{door}")
        assert isinstance(node, Attr)
        try:
            node.write(count.encode(), 0)
        except OSError as error:
            return int(error.errno or 0)
        return 0

    assert write("1") == errno.ERANGE, "SRIOV_EN is off"
    state.load_parameter(0, "SRIOV_EN", "1")
    state.load_parameter(0, "NUM_OF_VFS", "4")
    assert text(hardware, f"{FUNCTION}/sriov_totalvfs") == "4"
    assert [write(count) for count in ("5", "x", "2", "3", "2")] == [errno.ERANGE, errno.EINVAL, 0, errno.EBUSY, 0]
    assert {"0000:41:00.1", "0000:41:00.2"} <= names(hardware, "pci/devices")
    vf = "devices/pci0000:40/0000:40:01.1/0000:41:00.1"
    assert text(hardware, f"{vf}/device") == "0x101e"
    link = hardware._node(f"/{vf}/physfn")
    assert isinstance(link, Link) and link.target == f"../{PCI}"
    assert {"virtfn0", "virtfn1"} <= names(hardware, FUNCTION)
    state.happen(Event.DRIVER_RELOAD)
    assert "0000:41:00.1" not in names(hardware, "pci/devices"), "they go with the driver"
    assert text(hardware, door) == "0"
